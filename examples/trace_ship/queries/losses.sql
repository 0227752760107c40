-- How many records are missing, by host, program and cause.
-- A loss that no lane has, has no program. `uncounted`: losses and damages of an unknown number of records.
-- The condition for the host is a range, as the table is sorted by host: the server reads only its rows.
-- Edit: the host (empty: all), the times in nanoseconds since 1970.
WITH '' AS wanted_host, 0 AS wanted_from, 9223372036854775807 AS wanted_until
SELECT
    host,
    program,
    cause,
    sum(count) AS lost,
    countIf(count = 0) AS uncounted,
    uniqExact(trace) AS traces,
    min(time_ns) AS first_ns,
    max(time_ns) AS last_ns
FROM trace_records
WHERE kind = 'loss'
  AND host >= wanted_host AND host <= if(wanted_host = '', '\xFF\xFF\xFF\xFF', wanted_host)
  AND time_ns >= wanted_from AND time_ns <= wanted_until
GROUP BY host, program, cause
ORDER BY lost DESC, host, program, cause
