// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A processor's registers by Linux's /dev/cpu/N/msr, where a register's eight bytes lie at the
/// offset of its number.
/// @code
/// trace_ring::x86::msr_device registers(0);  // processor 0
/// const auto area = registers.read(trace_ring::x86::msr::ds_area);
/// @endcode

#include <trace_ring/x86/enabled.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include <trace_ring/large_files.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/x86/ds/hardware/msr_access.hpp>

namespace trace_ring::inline v1::x86 {

/// Any thread may use it, on any processor. Keeps errno.
class msr_device {
public:
    /// Throws setup_error, which says which is missing: the processor, the msr module or
    /// permission.
    /// @param cpu     the logical processor
    /// @param devices the system's folder of processors' registers; `processors`: the folder of
    ///                processors
    explicit msr_device(unsigned cpu, const std::string& devices = "/dev/cpu",
                        const std::string& processors = "/sys/devices/system/cpu")
        : file_(open(cpu, devices, processors)) {}

    /// One system call.
    [[nodiscard]] msr_value read(std::uint32_t number) const noexcept {
        const int saved = errno;
        msr_value out;
        const auto done = large_files::pread(file_.get(), &out.value, sizeof out.value, number);
        if (done != sizeof out.value) out = {0, fault_of(done < 0 ? errno : 0)};
        errno = saved;
        return out;
    }
    /// One system call.
    [[nodiscard]] msr_fault write(std::uint32_t number, std::uint64_t value) const noexcept {
        const int saved = errno;
        const auto done = large_files::pwrite(file_.get(), &value, sizeof value, number);
        const msr_fault out =
            done == sizeof value ? msr_fault::none : fault_of(done < 0 ? errno : 0);
        errno = saved;
        return out;
    }

private:
    [[nodiscard]] static msr_fault fault_of(int error) noexcept {
        switch (error) {
            case EIO:
                return msr_fault::general_protection;  // the driver caught the #GP
            case EPERM:
            case EACCES:
                return msr_fault::not_permitted;  // a locked kernel, or no CAP_SYS_RAWIO
            case ENXIO:
                return msr_fault::no_processor;
            default:
                return msr_fault::device;
        }
    }
    [[nodiscard]] static file_descriptor open(unsigned cpu, const std::string& devices,
                                              const std::string& processors) {
        const std::string path = devices + '/' + std::to_string(cpu) + "/msr";
        file_descriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_LARGEFILE));
        if (fd) return fd;
        const int error = errno;
        switch (error) {
            case ENOENT:
            case ENOTDIR:
                if (::access((processors + "/cpu" + std::to_string(cpu)).c_str(), F_OK) != 0)
                    throw setup_error(path, "there is no such processor", error);
                throw setup_error(path, "the kernel's msr module is not loaded (modprobe msr)",
                                  error);
            case ENXIO:
                throw setup_error(path, "there is no such processor", error);
            case EIO:
                throw setup_error(path, "this processor has no such registers", error);
            case EPERM:
            case EACCES:
                throw setup_error(path, "no permission: it takes root, and CAP_SYS_RAWIO", error);
            default:
                throw setup_error(path, "cannot open it", error);
        }
    }

    file_descriptor file_;
};
static_assert(msr_access<msr_device>);

}  // namespace trace_ring::inline v1::x86
