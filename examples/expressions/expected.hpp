// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a grammar of Boost.Spirit X3 says to be expected, of a parser with an action and of a list:
/// what they wrap, by the name of its rule.

#include <string>

#include <boost/spirit/home/x3.hpp>

namespace boost::spirit::x3 {
template <class Subject, class Action>
struct get_info<action<Subject, Action>> {
    using result_type = std::string;
    std::string operator()(const action<Subject, Action>& parser) const {
        return what(parser.subject);
    }
};
template <class Element, class Separator>
struct get_info<list<Element, Separator>> {
    using result_type = std::string;
    std::string operator()(const list<Element, Separator>& parser) const {
        return what(parser.left);
    }
};
}  // namespace boost::spirit::x3
