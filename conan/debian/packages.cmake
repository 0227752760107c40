# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
#
# What `cpack -G DEB` makes in a build folder: libtrace-ring-dev of the component headers, and
# trace-ring-tools of the component programs, if programs are built. finish.cmake adds what Debian
# requires in a package, and an installation from the sources does not have.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME trace-ring)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
# Whoever publishes the packages sets it: cmake -DCPACK_PACKAGE_CONTACT='Name <address>'
set(CPACK_PACKAGE_CONTACT "trace_ring authors <trace_ring@localhost.invalid>" CACHE STRING
    "The maintainer in the Debian packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has a summary
set(CPACK_COMPONENTS_ALL headers)
get_property(programs GLOBAL PROPERTY TRACE_RING_PROGRAMS)
if(programs)
    list(APPEND CPACK_COMPONENTS_ALL programs)
endif()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

set(CPACK_DEBIAN_HEADERS_PACKAGE_NAME libtrace-ring-dev)
set(CPACK_DEBIAN_HEADERS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_HEADERS_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_HEADERS_PACKAGE_DEPENDS libboost-dev)
set(CPACK_DEBIAN_HEADERS_PACKAGE_SUGGESTS trace-ring-tools)
set(CPACK_COMPONENT_HEADERS_DESCRIPTION
    "header-only tracing library for C++20\n\
A program records events with named fields and timestamps into a trace file,\n\
at about the cost of reading the clock. The file stays readable after the\n\
program was killed, and lost records are counted by cause.\n\
.\n\
This package has the headers, and the files with which CMake and pkg-config\n\
find them.")

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME trace-ring-tools)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_DEPENDS python3:any)  # for the module trace_ring
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONTROL_EXTRA
    ${CMAKE_CURRENT_LIST_DIR}/postinst ${CMAKE_CURRENT_LIST_DIR}/prerm)
if(TARGET address-trace)
    get_target_property(release address-trace TRACE_RING_CLANG)
    set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS clang-${release})
endif()
set(CPACK_COMPONENT_PROGRAMS_DESCRIPTION
    "programs that read traces, and record unmodified programs\n\
trace-reduce prints, filters, summarizes and exports the traces of programs\n\
that use the trace_ring library. trace-control switches events of a running\n\
program on and off. trace-ship inserts a machine's records into ClickHouse; its\n\
service is installed, and not enabled.\n\
.\n\
heap-record, branch-trace, trace-clauses and address-trace record the heap,\n\
the branches, chosen functions and the memory references of programs that\n\
do not use the library.")

# The packages' changelog has one entry, of the time of the configuration or of SOURCE_DATE_EPOCH.
string(TIMESTAMP CPACK_TRACE_RING_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
string(TIMESTAMP CPACK_TRACE_RING_YEAR "%Y" UTC)
set(CPACK_TRACE_RING_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/finish.cmake)
include(CPack)
