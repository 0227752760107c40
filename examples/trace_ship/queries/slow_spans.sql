-- The slowest spans of an event, and what ran inside each: first its begin, then the records of the lane where it
-- began. after_ns: since the begin; a few nanoseconds off, as durations and dates are rounded differently.
-- If the span ended in another lane (end_lane), these are the records until the time of its end.
-- Spans whose begin was lost are not found.
-- The condition for the host is a range, as the table is sorted by host: the server reads only its rows.
-- Edit, in both subqueries: the event, the host (empty: all), the times in nanoseconds since 1970, and the number
-- behind LIMIT.
SELECT
    duration_ns, duration_is, host, program, thread, time_ns - begin_ns AS after_ns, event, span,
    trace, began_lane AS lane, position, began_position, end_lane, end_position
FROM
(
    SELECT host, trace, lane AS began_lane, position, time_ns, program, thread, event, span
    FROM trace_records
    WHERE kind = 'record' AND (host, trace, lane) IN
    (
        WITH 'request' AS wanted_event, '' AS wanted_host,
             0 AS wanted_from, 9223372036854775807 AS wanted_until
        SELECT host, trace, began_lane
        FROM trace_records
        WHERE kind = 'record' AND span = 'end' AND duration_ns IS NOT NULL AND event = wanted_event
          AND host >= wanted_host AND host <= if(wanted_host = '', '\xFF\xFF\xFF\xFF', wanted_host)
          AND time_ns >= wanted_from AND time_ns <= wanted_until
        ORDER BY duration_ns DESC, host, trace, lane, position
        LIMIT 10
    )
)
ALL INNER JOIN
(
    WITH 'request' AS wanted_event, '' AS wanted_host,
         0 AS wanted_from, 9223372036854775807 AS wanted_until
    SELECT
        host, trace, began_lane, began_position, lane AS end_lane, position AS end_position,
        time_ns AS end_ns, duration_ns, duration_is,
        time_ns - toInt64(assumeNotNull(duration_ns)) AS begin_ns
    FROM trace_records
    WHERE kind = 'record' AND span = 'end' AND duration_ns IS NOT NULL AND event = wanted_event
      AND host >= wanted_host AND host <= if(wanted_host = '', '\xFF\xFF\xFF\xFF', wanted_host)
      AND time_ns >= wanted_from AND time_ns <= wanted_until
    ORDER BY duration_ns DESC, host, trace, lane, position
    LIMIT 10
)
USING (host, trace, began_lane)
WHERE position >= began_position
  AND ((began_lane = end_lane AND position < end_position) OR (began_lane != end_lane AND time_ns <= end_ns))
ORDER BY duration_ns DESC, host, trace, began_lane, began_position, position
