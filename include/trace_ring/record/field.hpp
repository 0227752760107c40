// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Describes a field of an event in the trace file: its type, its form, and its bytes in a record.
///
/// A record's payload, after the 8-byte header, holds the fixed part and then the variable data:
/// - each fixed field at the next multiple of its element's size, in the order declared, the same
///   on every machine; a fixed array is its elements in a row;
/// - a variable field (a string, a span) has a 16-bit word in the fixed part, aligned to 2: bits
///   0-14 its length in bytes, bit 15 set if it was cut; its data follows the fixed part, in the
///   order declared, each beginning at a multiple of 8 of the payload and padded with zeros to 8;
/// - the fixed part, too, is padded with zeros to a multiple of 8.

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace trace_ring::inline v1 {

/// A text that lives as long as the program: std::string_view without its header, which every
/// recording file would have to compile. Converts from C strings and views, and to a view.
class name_view {
public:
    constexpr name_view() noexcept = default;
    /// `text` has `size` bytes, and lives as long as the program.
    constexpr name_view(const char* text, std::size_t size) noexcept : text_(text), size_(size) {}
    /// From a text that ends with a zero.
    constexpr name_view(const char* text) noexcept : name_view(text, __builtin_strlen(text)) {}
    /// From any string view.
    template <class View>
    requires requires(const View& v) {
        v.data() + v.size();
        typename View::traits_type;
    }
    constexpr name_view(const View& text) noexcept : name_view(text.data(), text.size()) {}
    /// To any string view.
    template <class View>
    requires requires { typename View::traits_type; }
    [[nodiscard]] constexpr operator View() const noexcept { return View(text_, size_); }

    [[nodiscard]] constexpr const char* data() const noexcept { return text_; }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
    [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] constexpr const char* begin() const noexcept { return text_; }
    [[nodiscard]] constexpr const char* end() const noexcept { return text_ + size_; }
    /// Compares the bytes.
    friend constexpr bool operator==(name_view a, name_view b) noexcept {
        bool same = a.size_ == b.size_;
        for (std::size_t i = 0; same && i < a.size_; ++i) same = a.text_[i] == b.text_[i];
        return same;
    }
    /// Compares the bytes with any string view.
    template <class View>
    requires requires { typename View::traits_type; }
    friend constexpr bool operator==(name_view a, const View& b) noexcept {
        return a == name_view(b);
    }

private:
    const char* text_ = "";
    std::size_t size_ = 0;
};

/// A list that lives as long as the program.
template <class T>
struct static_list {
    using value_type = T;             ///< the type of elements
    using const_iterator = const T*;  ///< an iterator

    const T* first = nullptr;  ///< the first element
    std::size_t count = 0;     ///< the number of elements

    [[nodiscard]] constexpr const T* begin() const noexcept { return first; }
    [[nodiscard]] constexpr const T* end() const noexcept { return first + count; }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return count; }
    [[nodiscard]] constexpr std::size_t size_bytes() const noexcept { return count * sizeof(T); }
    [[nodiscard]] constexpr bool empty() const noexcept { return count == 0; }
    [[nodiscard]] constexpr const T& operator[](std::size_t i) const noexcept { return first[i]; }
};

/// A string literal as a template argument.
template <std::size_t N>
struct literal {
    char text[N]{};  ///< the text, with a zero at its end
    /// From a string literal.
    constexpr literal(const char (&from)[N]) noexcept {  // implicit: so that "name" converts
        for (std::size_t i = 0; i < N; ++i) text[i] = from[i];
    }
    /// The text without the zero.
    [[nodiscard]] constexpr name_view view() const noexcept { return {text, N - 1}; }
};

template <std::size_t N>
literal(const char (&)[N]) -> literal<N>;

/// The type of a field's elements. The values are those of the file format.
enum class field_type : std::uint8_t {
    u8 = 1,
    u16 = 2,
    u32 = 3,
    u64 = 4,
    i8 = 5,
    i16 = 6,
    i32 = 7,
    i64 = 8,
    f32 = 9,
    f64 = 10,
    boolean = 11,  ///< one byte, 0 or 1
    character = 12,
    address = 13,  ///< a code or data address, 8 bytes on every machine; shown in hexadecimal
};

/// Bytes of one element; 0 for a number that is not a type.
[[nodiscard]] constexpr std::size_t size_of(field_type type) noexcept {
    constexpr std::uint8_t bytes[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 1, 1, 8};
    const auto number = static_cast<std::uint8_t>(type);
    return number < sizeof bytes ? bytes[number] : 0;
}

/// How many values a field has.
enum class field_form : std::uint8_t {
    scalar = 0,
    array = 1,     ///< a fixed number of elements
    variable = 2,  ///< a number of elements given by each record; of characters: a string
};

/// What an event means on a timeline.
enum class event_kind : std::uint8_t {
    instant = 0,
    span = 1,     ///< its records have the flag begin or end, and nest within a lane
    counter = 2,  ///< its fields are values that hold until the next record
};

/// How many fields can be numbers of flows: the first ones, for which the dictionary has a bit.
inline constexpr std::size_t most_flow_fields = 64;

/// Bits of the length of a text or of a list in a record.
inline constexpr std::uint16_t variable_length_mask = 0x7FFF;
inline constexpr std::uint16_t variable_cut_bit = 0x8000;  ///< set if the text or list was cut

namespace impl {

template <class T>
void takes_in_braces(T) noexcept;
template <class T, class Value>
concept in_braces = requires(const Value& value) {
    takes_in_braces<T>({value});
};

/// Whether an implicit conversion to T may change the value. The rule is the one of braces,
/// `T{value}`, with two exceptions: of an integer the width counts, not the sign; and a
/// floating-point field may be given an integer that it holds exactly.
template <class T, class Value>
[[nodiscard]] consteval bool narrows() {
    constexpr bool durations = requires {
        typename T::rep;
        typename T::period;
        typename Value::rep;
        typename Value::period;
    };
    if constexpr (durations && !std::is_same_v<T, Value>) {
        return narrows<typename T::rep, typename Value::rep>();  // they convert if units allow it
    } else if constexpr (std::is_same_v<T, Value> || !std::is_arithmetic_v<T> ||
                         !std::is_convertible_v<const Value&, T>) {
        return false;  // the same type, or left to the language to convert or refuse
    } else if constexpr (std::is_same_v<T, bool> || in_braces<T, Value>) {
        return !in_braces<T, Value>;
    } else if constexpr (std::is_integral_v<T>) {
        return !in_braces<std::make_signed_t<T>, Value> &&
               !in_braces<std::make_unsigned_t<T>, Value>;
    } else if constexpr (sizeof(T) == 8) {
        return !in_braces<std::int32_t, Value> && !in_braces<std::uint32_t, Value>;
    } else {
        return !in_braces<std::int16_t, Value> && !in_braces<std::uint16_t, Value>;
    }
}

/// Whether a field takes this type. If not, the compiler shows the field, its name and its type.
template <class Field, class Value>
consteval bool takes_value() {
    using type = typename Field::type;
    constexpr bool converts = std::is_convertible_v<const Value&, const type&>;
    constexpr bool holds = !narrows<type, Value>();
    static_assert(converts, "trace_ring: this field is not made of the type that is given");
    static_assert(holds,
                  "trace_ring: this field does not hold every value of the type that is given; "
                  "write static_cast<T>(value), T being the field's type (a bool: value != 0)");
    return converts && holds;
}

/// The message `order.sent takes 2 fields: id, price; 1 given`, which g++ shows; clang 14 shows the
/// event and the values. `List` is the field_list that the values are for.
template <class Event, std::size_t Given, class List = typename Event::list,
          literal What = literal(" field")>
consteval auto wrong_count() {
    constexpr auto write = [](auto put) {
        const auto text = [&put](name_view what) {
            for (const char c : what) put(c);
        };
        const auto number = [&put](std::size_t n) {
            std::size_t unit = 1;
            while (n / unit > 9) unit *= 10;
            for (; unit != 0; unit /= 10) put(static_cast<char>('0' + n / unit % 10));
        };
        text(Event::name);
        text(" takes ");
        number(List::given_count);
        text(What.view());
        if (List::given_count != 1) text("s");
        for (std::size_t i = 0; i < List::given_count; ++i) {
            if (i == 0) text(": ");
            if (i != 0) text(", ");
            text(List::given_name(i));
        }
        text("; ");
        number(Given);
        text(" given");
    };
    constexpr std::size_t length = [write] {
        std::size_t n = 0;
        write([&n](char) { ++n; });
        return n;
    }();
    char out[length + 1]{};
    std::size_t n = 0;
    write([&](char c) { out[n++] = c; });
    return literal<length + 1>(out);
}
template <literal What>
struct call_is_wrong {
    static_assert(What.view().empty(),
                  "trace_ring: a record has one value for each field of its event");
    static constexpr bool value = true;
};

}  // namespace impl

}  // namespace trace_ring::inline v1
