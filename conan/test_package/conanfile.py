# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
import os
from tempfile import TemporaryDirectory

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout


class TestPackage(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        # Built outside of the sources, in a folder that goes when Conan ends. To keep it, name one:
        # -c tools.cmake.cmake_layout:test_folder=<folder>
        self._scratch = TemporaryDirectory(prefix="trace_ring-")
        cmake_layout(self, build_folder=self._scratch.name)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False  # it would lie among the sources
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        program = os.path.join(self.cpp.build.bindir, "test_package")
        if not self.dependencies["trace_ring"].options.tools:
            self.run(program, env="conanrun")
            return
        # The installed programs read what the library records, and find the module that they load.
        trace = os.path.join(self._scratch.name, "package.trace")
        self.run(f"{program} {trace}", env="conanrun")
        self.run(f"trace-reduce {trace} --backward --limit 1", env="conanrun")
        self.run(f"heap-record {program}", env="conanrun")
