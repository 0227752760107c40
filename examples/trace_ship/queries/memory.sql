-- The bytes that are allocated and not freed, by call site, from heap traces that trace-ship --symbols has shipped.
-- (Only with this option does it make the columns of all these events, and not only of those that it has met.)
-- - A block is known by its trace, process and address, and is live if the last call for its address allocated it.
--   A realloc frees the old address first. If the last call is a realloc, another thread may have got its old address
--   before its record was made: then the block is live if there were more allocations than frees.
-- - Blocks that a process inherited by fork are left out. Those of processes that have ended are not.
-- - A lost record of a free makes its block live.
-- The condition for the host is a range, as the table is sorted by host: the server reads only its rows.
-- Edit: the host and program (empty: all), and the time, in nanoseconds since 1970, as of which blocks are live.
WITH '' AS wanted_program
SELECT sum(bytes) AS live_bytes, count() AS blocks, max(bytes) AS largest, host, program, call, call_site
FROM
(
    SELECT
        host, trace, process, pid, address,
        any(program_then) AS program,
        argMaxIf(bytes_then, place, change > 0) AS bytes,
        argMaxIf(event, place, change > 0) AS call,
        argMaxIf(stack_text, place, change > 0) AS call_site
    FROM
    (
        WITH '' AS wanted_host, 9223372036854775807 AS wanted_until
        SELECT
            host, trace, process, pid, program AS program_then, event, stack_text,
            (ticks, lane, position) AS place,
            ifNull(realloc_old, ifNull(reallocarray_old, 0)) AS old,
            ifNull(multiIf(
                event = 'malloc', malloc_address, event = 'new', new_address,
                event = 'new_aligned', new_aligned_address, event = 'calloc', calloc_address,
                event = 'realloc', realloc_address, event = 'reallocarray', reallocarray_address,
                event = 'posix_memalign', posix_memalign_address,
                event = 'aligned_alloc', aligned_alloc_address, event = 'memalign', memalign_address,
                event = 'valloc', valloc_address, event = 'pvalloc', pvalloc_address,
                event = 'free', free_address, event = 'delete', delete_address,
                event = 'free_sized', free_sized_address,
                free_aligned_sized_address), 0) AS result,
            ifNull(multiIf(
                event = 'malloc', malloc_size, event = 'new', new_size,
                event = 'new_aligned', new_aligned_size, event = 'calloc', calloc_count * calloc_size,
                event = 'realloc', realloc_size,
                event = 'reallocarray', reallocarray_count * reallocarray_size,
                event = 'posix_memalign', posix_memalign_size,
                event = 'aligned_alloc', aligned_alloc_size, event = 'memalign', memalign_size,
                event = 'valloc', valloc_size, event = 'pvalloc', pvalloc_size, NULL), 0) AS requested,
            -- Address, what happened to its block (1: allocated; 2: resized in its place; -1: freed;
            -- -2: freed by realloc), bytes.
            arrayJoin(multiIf(
                event IN ('free', 'delete', 'free_sized', 'free_aligned_sized'), [(result, -1, 0)],
                old != 0 AND old != result AND (result != 0 OR requested = 0),
                    [(old, -2, 0), (result, 1, requested)],
                [(result, if(old != 0, 2, 1), requested)])) AS each,
            each.1 AS address,
            each.2 AS change,
            each.3 AS bytes_then
        FROM trace_records
        WHERE kind = 'record' AND address != 0
          AND event IN ('malloc', 'new', 'new_aligned', 'calloc', 'realloc', 'reallocarray', 'posix_memalign',
                        'aligned_alloc', 'memalign', 'valloc', 'pvalloc', 'free', 'delete', 'free_sized',
                        'free_aligned_sized')
          AND host >= wanted_host AND host <= if(wanted_host = '', '\xFF\xFF\xFF\xFF', wanted_host)
          AND time_ns <= wanted_until
    )
    GROUP BY host, trace, process, pid, address
    HAVING argMax(change, place) > 0
        OR (argMax(change, place) = -2 AND sum(multiIf(change = 1, 1, change = 2, 0, -1)) > 0)
)
WHERE wanted_program = '' OR program = wanted_program
GROUP BY host, program, call, call_site
ORDER BY live_bytes DESC, host, program, call, call_site
LIMIT 100
