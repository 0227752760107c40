// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The condition of --where, asked of the records of a CPTRAP file: by the same language, checks
/// and byte code as for the records of traces. The fields of a CPTRAP record are:
///
/// | field | what it is |
/// |---|---|
/// | type | its first byte; also by name: `type == "interface"` |
/// | code | its individualizing code, or the code of an entry of CP's trace table |
/// | length | of the record in bytes, with its header |
/// | page, index | the spool record of 4 KiB, and the record in it, both from 0 |
/// | offset | in the file, in bytes |
/// | entry | of an entry of CP's trace table: the event, also by name: `entry == "start_io"` |
/// | attached | of such an entry: whether the attached processor made it |
/// | data[N] | byte N of the data, from 0 |
/// | halfwords[N], words[N] | the big-endian number at byte 2 N, or at byte 4 N, of the data |
/// | ebcdic, ascii | the data as text, with a point for each byte that is no such character |
///
/// A record that has no such field is not selected, neither by a comparison nor by its opposite.

#include <memory>
#include <variant>

#include <trace_ring/cptrap/spool_reader.hpp>

#include "../../expressions/parse.hpp"

namespace trace_reduce {

/// Used by one thread.
class spool_condition {
public:
    using made = std::variant<std::shared_ptr<const spool_condition>, expressions::mistake>;

    /// The condition, or why it makes no sense for records of CPTRAP files.
    [[nodiscard]] static made make(const expressions::expression& what);
    ~spool_condition();
    spool_condition(const spool_condition&) = delete;
    spool_condition& operator=(const spool_condition&) = delete;

    /// `item` is a record. Linear in its bytes.
    [[nodiscard]] bool holds(const trace_ring::reduce::spool_item& item) const;

private:
    struct parts;

    explicit spool_condition(std::unique_ptr<parts> own);

    std::unique_ptr<parts> own_;
};

}  // namespace trace_reduce
