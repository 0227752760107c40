# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
from pathlib import Path
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import valid_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

required_conan_version = ">=2.0"

# The programs as CMake targets, for consumers.
TARGETS = "share/cmake/trace_ring/trace_ring-programs.cmake"


class TraceRingRecipe(ConanFile):
    name = "trace_ring"
    description = "Records what a program does at about the cost of reading the clock"
    license = "BSL-1.0"
    # Not here: url and homepage. ConanCenter requires both, url as the address of its own recipes, and
    # homepage as that of the project's published releases, of which there are none yet.
    topics = ("tracing", "ring-buffer", "flight-recorder", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"with_x86_ds": [True, False], "tools": [True, False]}
    # Of Boost the headers are enough: nobody should wait for its libraries on account of this one.
    default_options = {"with_x86_ds": False, "tools": False, "boost/*:header_only": True}
    no_copy_source = True

    def set_version(self):
        listing = load(self, Path(self.recipe_folder).parent / "CMakeLists.txt")
        self.version = re.search(r"project\(\s*trace_ring\s+VERSION\s+([\d.]+)", listing)[1]

    def export_sources(self):
        for pattern in ("include/*", "examples/*", "CMakeLists.txt", "conan/debian/*", "LICENSE"):
            copy(self, pattern, src=Path(self.recipe_folder).parent, dst=self.export_sources_folder)

    def configure(self):
        # No type has headers and programs: an application would give its consumers no headers.
        if self.options.tools:
            self.package_type = "unknown"

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        # The versions of ConanCenter next to those that the tests use.
        self.requires("boost/1.81.0", transitive_headers=True)
        if self.options.tools:
            for needed in ("cli11/2.1.2", "elfutils/0.190", "fmt/9.1.0", "libcurl/8.6.0", "lz4/1.9.4",
                           "ncurses/6.4", "sqlite3/3.44.2"):
                self.requires(needed, visible=False)

    def validate(self):
        # Conan passes the profile's standard to the consumer's compiler, and a default profile names
        # the compiler's default, gnu17.
        if self.settings.get_safe("compiler") and not valid_min_cppstd(self, 20):
            standard = self.settings.get_safe("compiler.cppstd")
            raise ConanInvalidConfiguration(
                f"{self.name} needs C++20, and compiler.cppstd is {standard or 'not set'}: set it to "
                "20 or gnu20, in the profile or with -s compiler.cppstd=20")
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration(f"{self.name} is for Linux")
        if self.options.tools:
            for needed in self.dependencies.host.values():
                if needed.ref.name != "boost" and needed.options.get_safe("shared"):
                    raise ConanInvalidConfiguration(
                        f"the programs of {self.name} contain their libraries: "
                        f"{needed.ref.name}/*:shared must be False")

    def package_id(self):
        # A definition for consumers: the files are the same with and without it.
        del self.info.options.with_x86_ds
        if self.info.options.tools:
            # Programs: how they were compiled does not concern the consumer's compiler.
            del self.info.settings.compiler
        else:
            self.info.clear()

    def generate(self):
        if not self.options.tools:
            return
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["TRACE_RING_BUILD_EXAMPLES"] = True
        # ConanCenter has no Zydis, which trace-clauses and address-trace need. So that the package is
        # the same on each machine, those of the machine are not used.
        toolchain.cache_variables["TRACE_RING_ZYDIS"] = "OFF"
        toolchain.cache_variables["TRACE_RING_LIBIBERTY"] = "OFF"
        toolchain.cache_variables["TRACE_RING_LLVM_CONFIG"] = "OFF"
        toolchain.user_presets_path = False
        toolchain.generate()

    def build(self):
        if self.options.tools:
            cmake = CMake(self)
            cmake.configure()
            cmake.build(target="trace_ring_programs")

    def package(self):
        copy(self, "LICENSE", src=self.source_folder, dst=Path(self.package_folder) / "licenses")
        copy(self, "include/*", src=self.source_folder, dst=self.package_folder)
        if self.options.tools:
            CMake(self).install(component="programs")

    def package_info(self):
        self.cpp_info.bindirs = ["bin"] if self.options.tools else []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "trace_ring")
        self.cpp_info.set_property("cmake_target_name", "trace_ring::trace_ring")
        self.cpp_info.set_property("pkg_config_name", "trace_ring")
        self.cpp_info.requires = ["boost::headers"]
        self.cpp_info.system_libs = ["pthread"]
        if self.options.with_x86_ds:
            self.cpp_info.defines = ["TRACE_RING_ENABLE_X86_DS"]
        if self.options.tools:
            self.cpp_info.set_property("cmake_build_modules", [TARGETS])
            # For who requires the library: Conan adds bindirs only of tool requirements.
            self.runenv_info.prepend_path("PATH", str(Path(self.package_folder) / "bin"))
