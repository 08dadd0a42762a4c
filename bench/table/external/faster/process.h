// What the kernel knows of this process, and a count of its asynchronous reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>

#include <libaio.h>

inline std::atomic<int64_t> device_reads{ 0 };

extern "C" {
int __real_io_submit(io_context_t ctx, long n, struct iocb** list);

// The linker sends calls of io_submit here (--wrap).
inline int count_io_submit(io_context_t ctx, long n, struct iocb** list) {
  int64_t reads = 0;
  for(long i = 0; i < n; ++i) {
    reads += list[i]->aio_lio_opcode == IO_CMD_PREAD;
  }
  device_reads.fetch_add(reads, std::memory_order_relaxed);
  return __real_io_submit(ctx, n, list);
}
int __wrap_io_submit(io_context_t ctx, long n, struct iocb** list);
}

// proc_field is the number behind "name:" in a file below /proc/self.
inline int64_t proc_field(const char* file, const std::string& name) {
  std::ifstream in(std::string{ "/proc/self/" } + file);
  for(std::string word; in >> word; in.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    if(int64_t n; word == name + ":" && in >> n) {
      return n;
    }
    in.clear();
  }
  throw std::runtime_error{ std::string{ "/proc/self/" } + file + " has no " + name };
}

struct DeviceBytes {
  int64_t read = proc_field("io", "read_bytes");
  int64_t written = proc_field("io", "write_bytes") - proc_field("io", "cancelled_write_bytes");
};

inline int64_t resident_bytes() { return proc_field("status", "VmRSS") * 1024; }
inline int64_t peak_resident_bytes() { return proc_field("status", "VmHWM") * 1024; }

inline void reset_peak() {
  std::ofstream out{ "/proc/self/clear_refs" };
  if(!(out << "5" << std::flush)) {
    throw std::runtime_error{ "/proc/self/clear_refs cannot be written" };
  }
}
