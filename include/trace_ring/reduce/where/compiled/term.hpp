// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A value of the records of one event: the names and the arithmetic of an expression, compiled for
/// where the event's fields lie.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/tables.hpp>
#include <trace_ring/reduce/where/compiled/ranges.hpp>

namespace trace_ring::inline v1::reduce::where {

/// The records for which an expression is compiled.
struct setting {
    const tables& in;
    const event_type* type = nullptr;  ///< null: an event that the dictionary lacks
    bool has_fields = false;           ///< false: fields cannot be read, or the record has none
};

/// Where a value is read from: a record, or a lane alone.
struct subject {
    const lane_info* lane = nullptr;
    const record_view* record = nullptr;
};

struct value {
    enum class state : std::uint8_t {
        unknown,    ///< the record has no such thing
        undefined,  ///< a division by zero
        numeric,
        text,
    };
    state is = state::unknown;
    where::number number{};
    std::string_view text{};

    [[nodiscard]] static value of(const where::number& n) noexcept {
        return {state::numeric, n, {}};
    }
    template <class T>
    [[nodiscard]] static value of_integer(T n) noexcept {
        return of(where::number::of(static_cast<std::uint64_t>(n)));
    }
    [[nodiscard]] static value of_text(std::string_view t) noexcept { return {state::text, {}, t}; }
};

/// A field's value as a number, by the field's type.
[[nodiscard]] inline number number_of(const field_value& of) noexcept {
    return of.visit([](auto value) { return number::of(widest<decltype(value)>{value}); });
}

class term {
public:
    [[nodiscard]] static term of(const number& constant) {
        term made;
        made.source_ = source::arithmetic;
        made.folded_ = value::of(constant);
        return made;
    }
    /// Compiles an expression, which must outlive the term. `as_text`: a value that has a name and
    /// a number is read as its name.
    [[nodiscard]] static term make(const expression& of, const setting& where, bool as_text) {
        term made;
        made.in_ = &where.in;
        made.of_ = &of;
        made.as_text_ = as_text;
        switch (of.what) {
            case form::constant:
            case form::duration:
            case form::text:
                made.source_ = source::constant;
                break;
            case form::name:
                made.name(where);
                break;
            case form::field:
            case form::element:
                made.field(where);
                break;
            case form::negated:
            case form::sum:
            case form::product:
                made.source_ = source::arithmetic;
                for (const auto& part : of.parts) made.parts_.push_back(make(part, where, false));
                break;
            default:
                break;  // a condition has no value
        }
        const bool known = std::all_of(made.parts_.begin(), made.parts_.end(),
                                       [](const term& part) { return part.constant(); });
        if (made.source_ == source::arithmetic && known) made.folded_ = made.arithmetic({});
        return made;
    }

    /// The value, if it is the same for all records.
    [[nodiscard]] std::optional<value> constant() const noexcept {
        if (source_ == source::missing) return value{};
        if (source_ == source::constant) return own();
        return folded_;
    }
    /// The field, if the term is a number that lies in each record's fixed part; else null.
    [[nodiscard]] const field_info* fixed_field() const noexcept {
        return source_ == source::field && field_->form != field_form::variable &&
                       element_ < field_->count && of_->what != form::text && !is_text()
                   ? field_
                   : nullptr;
    }
    /// Where `fixed_field()` lies in the payload, in bytes.
    [[nodiscard]] std::size_t offset() const noexcept {
        return field_->offset + element_ * size_of(field_->type);
    }
    /// The names of its values, if they are read as names and it is no text itself; else null.
    [[nodiscard]] const value_names* by_name() const noexcept {
        return source_ == source::field && as_text_ ? field_->values.get() : nullptr;
    }
    /// One of these values as a number, by the field's type.
    [[nodiscard]] number number_as(std::uint64_t value) const noexcept {
        return field_->type >= field_type::i8 ? number::of(static_cast<std::int64_t>(value))
                                              : number::of(value);
    }
    /// Whether the term is just the value of this name.
    [[nodiscard]] bool is(named what) const noexcept {
        return source_ == source::name && name_ == what;
    }
    /// Whether it is the same for all records of one thread in a lane.
    [[nodiscard]] bool of_lane() const noexcept {
        if (source_ == source::name) return name_ >= named::thread && name_ <= named::lane;
        if (source_ == source::field) return false;
        return std::all_of(parts_.begin(), parts_.end(),
                           [](const term& part) { return part.of_lane(); });
    }

    [[nodiscard]] value evaluate(const subject& what) const {
        switch (source_) {
            case source::constant:
                return own();
            case source::name:
                return named_value(what);
            case source::field:
                return field_value_of(*what.record);
            case source::arithmetic:
                return folded_ ? *folded_ : arithmetic(what);
            case source::missing:
                break;
        }
        return {};
    }

private:
    enum class source : std::uint8_t { missing, constant, name, field, arithmetic };

    [[nodiscard]] bool is_text() const noexcept { return field_->type == field_type::character; }
    [[nodiscard]] value own() const noexcept {
        if (name_ == named::event) return value::of_text(*event_);
        return of_->what == form::text ? value::of_text(of_->word) : value::of(of_->value);
    }

    void name(const setting& where) {
        const named what = meaning(*of_);
        if (what == named::field) {
            field(where);
        } else if (what == named::event) {
            if (where.type == nullptr) return;
            source_ = source::constant;
            name_ = what;
            event_ = &where.type->name;
        } else {
            source_ = source::name;
            name_ = what;
        }
    }
    void field(const setting& where) {
        if (where.type == nullptr || !where.has_fields) return;
        index_ = where.type->find_named(of_->word);
        if (index_ == event_type::npos) return;
        field_ = &where.type->fields[index_];
        if (of_->what == form::element) {
            const number most = number::of(std::uint64_t{0xFFFF});
            if (of_->value > most) return;  // longer than any record
            element_ = static_cast<std::size_t>(of_->value.real());
            if (field_->form == field_form::array && element_ >= field_->count) return;
        }
        source_ = source::field;
    }

    [[nodiscard]] value named_value(const subject& what) const {
        const lane_info& lane = *what.lane;
        const auto id = [](std::uint32_t number) {
            return number == 0 ? value{} : value::of_integer(number);
        };
        switch (name_) {
            case named::thread:
                if (!as_text_) return id(lane.thread);
                return lane.listed || lane.thread != 0 ? value::of_text(lane.name) : value{};
            case named::process:
                if (!as_text_) return id(lane.pid);
                return lane.process && *lane.process < in_->processes().size()
                           ? value::of_text(in_->processes()[*lane.process].name)
                           : value{};
            case named::tid:
                return id(lane.thread);
            case named::pid:
                return id(lane.pid);
            case named::lane:
                return value::of_integer(lane.number);
            case named::ticks:
                return value::of_integer(what.record->time());
            case named::position:
                return value::of_integer(what.record->position());
            case named::time:
                return time(what.record->time());
            case named::latest: {
                const auto latest = what.record->latest();
                return latest ? time(*latest) : value{};
            }
            default:
                return {};
        }
    }
    [[nodiscard]] value time(std::uint64_t ticks) const noexcept {
        const auto ns = since_begin(in_->time(), ticks);
        return ns ? value::of(number::of(*ns)) : value{};
    }
    [[nodiscard]] value field_value_of(const record_view& record) const {
        const field_value all = record.field(index_);
        if (is_text()) return all ? value::of_text(all.text()) : value{};
        const field_value one = field_->form == field_form::scalar ? all : all.at(element_);
        if (as_text_ && one) return value::of_text(shown(one));
        return one ? value::of(number_of(one)) : value{};
    }

    /// The text that exporters show: the value's name, else its number.
    [[nodiscard]] std::string_view shown(const field_value& of) const {
        if (const std::string_view name = of.name(); !name.empty()) return name;
        digits_ = of.type() >= field_type::i8 ? std::to_string(of.i64()) : std::to_string(of.u64());
        return digits_;
    }

    [[nodiscard]] value arithmetic(const subject& what) const {
        using state = value::state;
        value sum = parts_[0].evaluate(what);
        bool undefined = sum.is == state::undefined;
        if (sum.is == state::unknown) return {};
        if (of_->what == form::negated) {
            for (std::size_t i = 0; i < of_->signs.size(); ++i) sum.number = -sum.number;
            return sum;
        }
        for (std::size_t i = 1; i < parts_.size(); ++i) {
            const value next = parts_[i].evaluate(what);
            if (next.is == state::unknown) return {};  // also after a division by zero
            undefined = undefined || next.is == state::undefined;
            if (undefined) continue;
            switch (of_->signs[i]) {
                case '+':
                    sum.number = sum.number + next.number;
                    break;
                case '-':
                    sum.number = sum.number - next.number;
                    break;
                case '*':
                    sum.number = sum.number * next.number;
                    break;
                case '&':
                    sum.number = sum.number & next.number;
                    break;
                default:
                    undefined = next.number.is_zero();
                    if (undefined) break;
                    sum.number =
                        of_->signs[i] == '/' ? sum.number / next.number : sum.number % next.number;
            }
        }
        if (undefined) sum.is = state::undefined;
        return sum;
    }

    const tables* in_ = nullptr;
    const expression* of_ = nullptr;
    const std::string* event_ = nullptr;
    const field_info* field_ = nullptr;
    std::size_t index_ = 0;
    std::size_t element_ = 0;
    std::vector<term> parts_;
    std::optional<value> folded_;
    mutable std::string digits_;  // of a value without a name
    source source_ = source::missing;
    named name_ = named::field;
    bool as_text_ = false;
};

}  // namespace trace_ring::inline v1::reduce::where
