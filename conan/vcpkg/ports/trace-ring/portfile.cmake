# An overlay port: it builds the sources in which it lies.
cmake_path(SET SOURCE_PATH NORMALIZE "${CURRENT_PORT_DIR}/../../../..")

# The headers and the programs are the same for a debug build of the user.
set(VCPKG_BUILD_TYPE release)

vcpkg_check_features(OUT_FEATURE_OPTIONS options
    FEATURES
        tools  TRACE_RING_BUILD_EXAMPLES
        x86-ds TRACE_RING_ENABLE_X86_DS
)
# What a machine happens to have must not change the package.
vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        ${options}
        -DTRACE_RING_LIBIBERTY=OFF
        -DTRACE_RING_LLVM_CONFIG=OFF
    MAYBE_UNUSED_VARIABLES
        TRACE_RING_LIBIBERTY
        TRACE_RING_LLVM_CONFIG
)
if("tools" IN_LIST FEATURES)
    vcpkg_cmake_build(TARGET trace_ring_programs)
endif()
foreach(component IN ITEMS headers programs)
    vcpkg_execute_required_process(
        COMMAND "${CMAKE_COMMAND}" --install . --component ${component}
        WORKING_DIRECTORY "${CURRENT_BUILDTREES_DIR}/${TARGET_TRIPLET}-rel"
        LOGNAME "install-${component}-${TARGET_TRIPLET}"
    )
endforeach()

vcpkg_cmake_config_fixup(PACKAGE_NAME trace_ring CONFIG_PATH share/cmake/trace_ring)
if("tools" IN_LIST FEATURES)
    # A program looks for the modules that it loads next to itself as well.
    set(tools "${CURRENT_PACKAGES_DIR}/tools/${PORT}")
    file(MAKE_DIRECTORY "${CURRENT_PACKAGES_DIR}/tools")
    file(RENAME "${CURRENT_PACKAGES_DIR}/bin" "${tools}")
    file(GLOB modules "${CURRENT_PACKAGES_DIR}/lib/trace_ring/*")
    file(COPY ${modules} DESTINATION "${tools}")
    file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib")
    # CMAKE_CURRENT_LIST_DIR is one folder less deep than where CMake installed it.
    set(targets "${CURRENT_PACKAGES_DIR}/share/trace_ring/trace_ring-programs.cmake")
    vcpkg_replace_string("${targets}" "/../../../bin/" "/../../tools/${PORT}/")
    vcpkg_replace_string("${targets}" "/../../../lib/trace_ring/" "/../../tools/${PORT}/")
endif()
file(MAKE_DIRECTORY "${CURRENT_PACKAGES_DIR}/lib")
file(RENAME "${CURRENT_PACKAGES_DIR}/share/pkgconfig" "${CURRENT_PACKAGES_DIR}/lib/pkgconfig")
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
