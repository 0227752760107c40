# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
from pathlib import Path
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import valid_min_cppstd
from conan.tools.files import copy, load

required_conan_version = ">=2.0"


class TraceRingRecipe(ConanFile):
    name = "trace_ring"
    description = "Records what a program does at about the cost of reading the clock"
    license = "BSL-1.0"
    topics = ("tracing", "ring-buffer", "flight-recorder", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"with_x86_ds": [True, False]}
    # Of Boost the headers are enough: nobody should wait for its libraries on account of this one.
    default_options = {"with_x86_ds": False, "boost/*:header_only": True}
    no_copy_source = True

    def set_version(self):
        listing = load(self, Path(self.recipe_folder).parent / "CMakeLists.txt")
        self.version = re.search(r"project\(\s*trace_ring\s+VERSION\s+([\d.]+)", listing)[1]

    def export_sources(self):
        for pattern in ("include/*", "LICENSE"):
            copy(self, pattern, src=Path(self.recipe_folder).parent, dst=self.export_sources_folder)

    def requirements(self):
        self.requires("boost/[>=1.74]", transitive_headers=True)

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

    def package_id(self):
        # The same files for everyone, also with the option: it is no more than a definition.
        self.info.clear()

    def package(self):
        copy(self, "LICENSE", src=self.source_folder, dst=Path(self.package_folder) / "licenses")
        copy(self, "include/*", src=self.source_folder, dst=self.package_folder)

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "trace_ring")
        self.cpp_info.set_property("cmake_target_name", "trace_ring::trace_ring")
        self.cpp_info.set_property("pkg_config_name", "trace_ring")
        self.cpp_info.requires = ["boost::headers"]
        self.cpp_info.system_libs = ["pthread"]
        if self.options.with_x86_ds:
            self.cpp_info.defines = ["TRACE_RING_ENABLE_X86_DS"]
