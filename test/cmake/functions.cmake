# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
#
# The functions by which each folder of test/ lists its tests. They use these variables, which
# test/CMakeLists.txt sets:
#   trace_ring_test_folder  the source folder test/
#   trace_ring_test_output  where the tests' programs are built: the binary folder of test/
#   trace_ring_compile      the compiler as a command line, for tests that try what compiles

# A test is named for ctest by the first folder below test/ and the name that its list has:
# `trace_ring_test(site_test)` is recorder/site_test in test/recorder/CMakeLists.txt and in
# test/recorder/site/CMakeLists.txt. In test/CMakeLists.txt itself the name is the whole name.
function(trace_ring_entry out name)
    cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${trace_ring_test_folder}
               OUTPUT_VARIABLE folder)
    string(REGEX REPLACE "/.*" "" folder ${folder})
    if(folder STREQUAL ".")
        set(${out} ${name} PARENT_SCOPE)
    else()
        set(${out} ${folder}/${name} PARENT_SCOPE)
    endif()
endfunction()

# Sets `out` to whether this build leaves out tests with these labels, because they would find
# nothing new in it. These labels have a meaning:
#   slow    takes many seconds, or is useful only now and then: not run before each commit. A case
#           may have it, and one_thread, as Boost.Test's decorator
#   tools   runs programs of the machine, or those in examples/, which not every build has
#   source  looks at the sources with a compiler or without: the same on every machine
#   must_not_compile  a source test of errors, whose words are each compiler's own
#   portable    layouts, atomics, what processes of two word sizes share, readers, the protocols of
#               rings and recorders: what another word size or processor may break
#   one_thread  starts no thread except to record what it then reads: ThreadSanitizer finds nothing
#   calm    depends on a machine that is not too busy: it may be tried three times in all, and
#           test/run names it if it needed that
function(trace_ring_left_out out)
    set(left_out OFF)
    if(TRACE_RING_TEST_ONLY AND NOT TRACE_RING_TEST_ONLY IN_LIST ARGN)
        set(left_out ON)
    endif()
    foreach(label IN LISTS ARGN)
        if(label IN_LIST TRACE_RING_TEST_WITHOUT)
            set(left_out ON)
        endif()
    endforeach()
    set(${out} ${left_out} PARENT_SCOPE)
endfunction()

# trace_ring_test(<name>_test [IN <program>] [NO_PCH] [NO_UNITY] [SERIAL] [TIMEOUT <seconds>]
#                 [LABELS <label>...] [SOURCES <file>...] [APART <file>...] [LIBS <library>...]
#                 [DEFINES <definition>...] [DEPENDS <target>...])
#   One entry for ctest, which runs the cases in <name>_test.cpp and SOURCES. It is reported as
#   skipped if a case calls cannot_run (proof.hpp).
#   IN       it is part of tests.<program>, with all others IN it: a test takes seconds to compile
#            alone, most of them for its includes. So everything in a source is in a suite of the
#            source, and no two names meet. Without IN, the test is its own program.
#   NO_PCH   it looks at what a header includes, or is compiled in a special way (-fPIC, another
#            -O), and cannot begin with the header that the others share.
#   NO_UNITY each of its sources is a translation unit in each build: that is what it looks at.
#   SERIAL   it measures, or needs every core: no other test runs at the same time.
#   LABELS   the folder's name is always one; see above for the others.
#   APART    sources that are compiled alone, without the shared header.
#   DEPENDS  targets that it runs: they are built with it.
function(trace_ring_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "NO_PCH;NO_UNITY;SERIAL" "TIMEOUT;IN"
                          "LABELS;SOURCES;APART;LIBS;DEFINES;DEPENDS")
    trace_ring_entry(entry ${name})
    cmake_path(GET entry PARENT_PATH folder)
    trace_ring_left_out(left_out ${folder} ${arg_LABELS})
    if(left_out)
        return()
    endif()
    # By whole paths: the program may belong to another folder.
    set(sources "")
    set(selected "")
    foreach(source IN LISTS name arg_SOURCES arg_APART)
        if(source STREQUAL name)
            string(APPEND source .cpp)
        endif()
        cmake_path(ABSOLUTE_PATH source NORMALIZE)
        list(APPEND sources ${source})
        cmake_path(IS_PREFIX trace_ring_test_folder ${source} is_test)
        if(is_test)
            cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${trace_ring_test_folder})
            list(APPEND selected ${source})
        endif()
    endforeach()
    string(REPLACE "/" "." target ${entry})
    if(arg_IN)
        set(target tests.${arg_IN})
        list(PREPEND selected --)
    else()
        set(selected "")
    endif()
    if(NOT TARGET ${target})
        add_executable(${target})
        target_link_libraries(${target} PRIVATE
                              trace_ring::trace_ring trace_ring_warnings trace_ring_test_main)
        target_include_directories(${target} PRIVATE ${trace_ring_test_folder}
                                                     ${PROJECT_SOURCE_DIR}/examples)
        set_target_properties(${target} PROPERTIES
                              RUNTIME_OUTPUT_DIRECTORY ${trace_ring_test_output})
        if(NOT arg_NO_PCH)
            target_precompile_headers(${target} REUSE_FROM trace_ring_test_pch)
        endif()
        if(arg_NO_UNITY)
            set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
        endif()
    endif()
    target_sources(${target} PRIVATE ${sources})
    if(arg_APART)
        set_source_files_properties(${arg_APART} TARGET_DIRECTORY ${target} PROPERTIES
                                    SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
    target_link_libraries(${target} PRIVATE ${arg_LIBS})
    target_compile_definitions(${target} PRIVATE ${arg_DEFINES})
    if(arg_DEPENDS)
        add_dependencies(${target} ${arg_DEPENDS})
    endif()
    set(cases "")
    foreach(label IN ITEMS one_thread slow)
        if(label IN_LIST TRACE_RING_TEST_WITHOUT)
            list(APPEND cases "--run_test=!@${label}")
        endif()
    endforeach()
    add_test(NAME ${entry} COMMAND ${target} ${cases} ${selected}
             WORKING_DIRECTORY ${trace_ring_test_output})
    trace_ring_test_properties(${entry} "${arg_TIMEOUT}" "${arg_SERIAL}" ${arg_LABELS})
endfunction()

# trace_ring_script_test(<name> COMMAND <command>... [SERIAL] [TIMEOUT <seconds>]
#                        [LABELS <label>...])
#   An entry for ctest that runs a command, in its own empty folder. The command exits with 77 if it
#   cannot run on this machine, after it has printed why: that is reported as skipped.
function(trace_ring_script_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL" "TIMEOUT" "LABELS;COMMAND")
    trace_ring_entry(entry ${name})
    cmake_path(GET entry PARENT_PATH folder)
    trace_ring_left_out(left_out ${folder} ${arg_LABELS})
    if(left_out)
        return()
    endif()
    set(scratch ${trace_ring_test_output}/scratch/${entry})
    file(MAKE_DIRECTORY ${scratch})
    add_test(NAME ${entry} COMMAND ${arg_COMMAND} WORKING_DIRECTORY ${scratch})
    trace_ring_test_properties(${entry} "${arg_TIMEOUT}" "${arg_SERIAL}" ${arg_LABELS})
endfunction()

# The properties that both kinds of entry have; the labels come last.
function(trace_ring_test_properties entry timeout serial)
    if(NOT timeout)
        set(timeout ${TRACE_RING_TEST_TIMEOUT})
    endif()
    if("$ENV{TRACE_RING_LONG}" STREQUAL "1")  # test/run --long: the tests do ten times as much
        math(EXPR timeout "${timeout} * 10")
    endif()
    cmake_path(GET entry PARENT_PATH folder)
    # Boost.Test leaves signals alone: tests raise their own, and a crash is reported as a crash.
    set_tests_properties(${entry} PROPERTIES
        TIMEOUT ${timeout}
        LABELS "${folder};${ARGN}"
        SKIP_RETURN_CODE 77
        ENVIRONMENT "BOOST_TEST_CATCH_SYSTEM_ERRORS=no;BOOST_TEST_LOG_LEVEL=test_suite;BOOST_TEST_COLOR_OUTPUT=no")
    if(serial)
        set_tests_properties(${entry} PROPERTIES RUN_SERIAL ON)
    endif()
endfunction()

# trace_ring_source_test(<name> <script> <argument>... [SLOW])
#   An entry for ctest that runs a Python script, which looks at the sources.
#   SLOW     it has the label slow, too.
function(trace_ring_source_test name script)
    cmake_parse_arguments(PARSE_ARGV 2 arg "SLOW" "" "")
    set(labels source)
    if(arg_SLOW)
        list(APPEND labels slow)
    endif()
    cmake_path(ABSOLUTE_PATH script NORMALIZE)
    trace_ring_script_test(${name} LABELS ${labels} COMMAND
        ${Python3_EXECUTABLE} ${script} ${arg_UNPARSED_ARGUMENTS})
endfunction()

# trace_ring_compile_fail(<name>_fail [<dialect>])
#   Negative compile tests: one entry for ctest that tries every case in <name>_fail.cpp. A case and
#   its positive twin are next to each other in that file, with the expected message:
#       #ifdef FAILS_two_claims  // expect: names two policies of the family claim
#       ...
#       #endif
#       #ifdef PASSES_two_claims
#       ...
#       #endif
#   compile_fail/check.py describes the rest.
function(trace_ring_compile_fail name)
    set(dialect "")
    set(entry ${name})
    if(ARGC GREATER 1)
        set(dialect -std=${ARGV1})
        set(entry ${name}.${ARGV1})
    endif()
    trace_ring_script_test(${entry} LABELS source must_not_compile COMMAND ${Python3_EXECUTABLE}
        ${trace_ring_test_folder}/compile_fail/check.py ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cpp
        -- ${trace_ring_compile} ${dialect})
endfunction()

# What other processes store may move a writer's words to any address. That costs nothing on the
# machines that there are, and checking each time would. So a sanitizer does not check the alignment
# in these sources; they are then compiled alone, so that it checks all others.
function(trace_ring_at_any_address)
    if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
        set_source_files_properties(${ARGN} PROPERTIES
            COMPILE_OPTIONS -fno-sanitize=alignment SKIP_UNITY_BUILD_INCLUSION ON
            SKIP_PRECOMPILE_HEADERS ON)
    endif()
endfunction()

# trace_ring_both_modes(<name> SOURCE <source> [TRIED <source>] [FLAGS <flag>...] [LIBS <flag>...])
#   A program for 64 and for 32 bits, independent of the flags of this build: the target <name>
#   builds both, and <name>_64 and <name>_32 are their paths, empty if the compiler cannot build them.
#   TRIED  what is compiled to find that out, if SOURCE takes long
function(trace_ring_both_modes name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE;TRIED" "FLAGS;LIBS")
    cmake_path(ABSOLUTE_PATH arg_SOURCE)
    if(NOT arg_TRIED)
        set(arg_TRIED ${arg_SOURCE})
    endif()
    set(program ${CMAKE_CURRENT_BINARY_DIR}/${name})
    set(programs "")
    foreach(bits IN ITEMS 64 32)
        set(${name}_${bits} "" PARENT_SCOPE)
        set(how ${CMAKE_CXX_COMPILER} -m${bits} ${arg_FLAGS})
        if(bits EQUAL 32)  # as the preset m32
            list(APPEND how -idirafter /usr/include/x86_64-linux-gnu)
        endif()
        execute_process(COMMAND ${how} ${arg_TRIED} ${arg_LIBS} -o ${program}.tried
                        RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
        if(NOT result EQUAL 0)
            if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
                trace_ring_missing("the tests of programs of ${bits} bits"
                                   "a compiler for -m${bits} (Debian: g++-12-multilib)")
            endif()
            continue()
        endif()
        add_custom_command(OUTPUT ${program}.${bits} DEPENDS ${arg_SOURCE} VERBATIM
                           COMMAND ${how} ${arg_SOURCE} ${arg_LIBS} -o ${program}.${bits})
        list(APPEND programs ${program}.${bits})
        set(${name}_${bits} ${program}.${bits} PARENT_SCOPE)
    endforeach()
    add_custom_target(${name} DEPENDS ${programs})
endfunction()
