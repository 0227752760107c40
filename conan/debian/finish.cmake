# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
#
# Run by cpack in each of the installed components, before it makes the packages: their changelogs and
# copyright files, manual pages compressed as Debian has them, and completions where its zsh looks.
set(version ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})

# The lines of the licence, as a field of a control file has them: a point is an empty line.
file(READ ${CPACK_TRACE_RING_LICENSE} license)
string(STRIP "${license}" license)
string(REGEX REPLACE "\n\n" "\n.\n" license "${license}")
string(REPLACE "\n" "\n " license "${license}")

function(compress file)
    execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
    set(folder ${CPACK_TEMPORARY_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX}/share)
    string(TOUPPER ${component} upper)
    set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
    # Whoever installs from the sources gets the licence there; Debian has it in the file copyright.
    file(REMOVE_RECURSE ${folder}/doc/trace_ring)

    file(WRITE ${folder}/doc/${package}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: trace_ring

Files: *
Copyright: ${CPACK_TRACE_RING_YEAR} the trace_ring authors
License: BSL-1.0
 ${license}
")
    file(WRITE ${folder}/doc/${package}/changelog.Debian
"trace-ring (${version}) unstable; urgency=medium

  * Release ${CPACK_PACKAGE_VERSION}.

 -- ${CPACK_PACKAGE_CONTACT}  ${CPACK_TRACE_RING_DATE}
")
    compress(${folder}/doc/${package}/changelog.Debian)

    if(EXISTS ${folder}/zsh/site-functions)
        file(RENAME ${folder}/zsh/site-functions ${folder}/zsh/vendor-completions)
    endif()

    file(GLOB_RECURSE pages ${folder}/man/*.[1-9])
    foreach(page IN LISTS pages)
        compress(${page})
    endforeach()
endforeach()
