-- All records of one flow, on all hosts, in the order of their times.
-- The order of records on different hosts is as good as the hosts' clocks agree.
-- Edit: the flow's number; the times in nanoseconds since 1970.
WITH 12345 AS wanted_flow, 0 AS wanted_from, 9223372036854775807 AS wanted_until
SELECT time, time_ns, time_is, host, program, pid, thread, tid, event, span, duration_ns, trace, lane, position
FROM trace_records
WHERE kind = 'record' AND has(flows, wanted_flow)
  AND time_ns >= wanted_from AND time_ns <= wanted_until
ORDER BY time_ns, host, trace, lane, position
