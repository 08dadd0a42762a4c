// Checks each access of a kernel to memory. g++ calls the functions in front of accesses that it has for a race detector (-fsanitize=thread)
// where it compiles kernels, but they are those of check.cc: so what is found does not depend on the order in which threads and blocks run.
//
// For every two bytes of the memory that kernels use, a shadow has who has written and who has read them last. Two accesses of which one writes are a
// race if they are made by two blocks of a launch, or by two threads of a block between two __syncthreads: nothing orders them on a device. They
// are none if both are atomic, or both write what was there before.
#pragma once

#include <stdint.h>
#include <string>
#include <vector>

// How a kernel may use bytes of the memory that it is given. What it may write, it may read after it has written it.
enum Use : uint8_t { NOTHING, READ, WRITE, UPDATE };

// A launch begins, which uses bytes at memory.
void check_launch(unsigned char *memory, size_t bytes);
void may_use(size_t from, size_t bytes, Use use);

// A block begins, with so many bytes of shared memory beside what the kernel declares. All bytes of it hold fill.
void check_block(unsigned char fill, size_t shared_bytes);

// A thread begins to run, or goes on, until it waits or ends.
void check_thread(unsigned number, const std::vector<char> &stack);
void check_thread_waits();

// All threads have come to a __syncthreads.
void check_synchronized();

// Whether shared memory was read in this launch that no thread had written, and who has done so first. That is no fault if no result depends on it.
bool reads_unwritten();
std::string unwritten_reader();

// Where the byte of the memory of the launch lies: the name of its argument.
std::string where(size_t byte);

// Ends the thread, and its block, for what is wrong.
[[noreturn]] void stop(const std::string &fault);
