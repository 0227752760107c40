-- The last records of a thread, the newest first.
-- The condition for the host is a range, as the table is sorted by host: the server reads only its rows.
-- Edit: the texts (an empty one: any), the times in nanoseconds since 1970, the number behind LIMIT.
-- To see the fields of an event, add their columns, EVENT_FIELD, to the SELECT.
WITH 'here' AS wanted_host, '' AS wanted_program, 'worker' AS wanted_thread, '' AS wanted_event,
     0 AS wanted_from, 9223372036854775807 AS wanted_until
SELECT
    time, time_ns, time_is, host, program, pid, thread, tid, event, span, duration_ns, flows, trace, lane, position
FROM trace_records
WHERE kind = 'record'
  AND host >= wanted_host AND host <= if(wanted_host = '', '\xFF\xFF\xFF\xFF', wanted_host)
  AND (wanted_program = '' OR program = wanted_program)
  AND (wanted_thread = '' OR thread = wanted_thread)
  AND (wanted_event = '' OR event = wanted_event)
  AND time_ns >= wanted_from AND time_ns <= wanted_until
ORDER BY time_ns DESC, trace, lane, position DESC
LIMIT 100
