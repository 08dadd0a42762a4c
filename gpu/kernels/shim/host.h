// A program that runs kernels on the CPU, block by block. For each it reads the kernel's name, the place of
// the block and the arguments, with the bytes of regions, from its standard input, and writes what went
// wrong, or the bytes of the regions afterwards, to its standard output. shim.go is the other side. build.go
// adds the kernels and a main that calls serve.
//
// Each thread of a block is a coroutine. All run in turn until they end or come to __syncthreads, and
// again from there, in ascending or in descending order: a kernel that lacks a __syncthreads gives other
// results in one of them.
#pragma once

#include "cuda.h"

#include <functional>
#include <list>
#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#include <vector>

// Kernel is a kernel with the types of its parameters: r and w for a pointer to what is const or not,
// i, l and f for int, long long and float.
struct Kernel {
	std::string types;
	std::function<void(void **)> run; // with the addresses of its arguments
};

template <class T> static char type_letter() {
	if (std::is_pointer<T>::value) {
		return std::is_const<typename std::remove_pointer<T>::type>::value ? 'r' : 'w';
	}
	return std::is_same<T, int>::value ? 'i' : std::is_same<T, long long>::value ? 'l' : std::is_same<T, float>::value ? 'f' : '?';
}

template <class... A, size_t... I> static void call(void (*f)(A...), void **args, std::index_sequence<I...>) {
	f(*(A *)args[I]...);
}

template <class... A> static Kernel kernel(void (*f)(A...)) {
	return {{type_letter<A>()...}, [f](void **args) { call(f, args, std::index_sequence_for<A...>()); }};
}

enum { SHARED_BYTES = 64 << 10, MOST_THREADS = 1024, STACK_BYTES = 64 << 10 };
thread_local float shared[SHARED_BYTES / sizeof(float)];

struct Thread {
	ucontext_t context;
	std::vector<char> stack;
	dim3 index;
	enum { READY, WAITS, ENDED } state;
};

static std::vector<Thread> threads(MOST_THREADS);
static Thread *present;
static ucontext_t scheduler;
static const Kernel *running;
static void **arguments;

void __syncthreads() {
	present->state = Thread::WAITS;
	swapcontext(&present->context, &scheduler);
}

static void begin() {
	running->run(arguments);
	present->state = Thread::ENDED;
}

// Runs the threads of a block. Returns what went wrong.
static std::string run_block(unsigned shared_bytes, bool descending) {
	unsigned n = blockDim.x * blockDim.y * blockDim.z;
	if (n > MOST_THREADS || shared_bytes > sizeof shared) {
		return "the block is too large";
	}
	for (unsigned t = 0; t < n; t++) {
		Thread &thread = threads[t];
		thread.index = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
		thread.state = Thread::READY;
		thread.stack.resize(STACK_BYTES);
		getcontext(&thread.context);
		thread.context.uc_stack.ss_sp = thread.stack.data();
		thread.context.uc_stack.ss_size = thread.stack.size();
		thread.context.uc_link = &scheduler;
		makecontext(&thread.context, begin, 0);
	}
	memset(shared, 0xff, sizeof shared); // NaN
	for (unsigned waiting = n; waiting > 0;) {
		waiting = 0;
		for (unsigned k = 0; k < n; k++) {
			present = &threads[descending ? n - 1 - k : k];
			if (present->state == Thread::ENDED) {
				continue;
			}
			threadIdx = present->index;
			swapcontext(&scheduler, &present->context);
			waiting += present->state == Thread::WAITS;
		}
		if (waiting > 0 && waiting < n) {
			return "some threads of a block have ended where others wait for them";
		}
	}
	return "";
}

static void read_bytes(void *to, size_t n) {
	if (fread(to, 1, n, stdin) != n) {
		exit(0); // the other side has ended
	}
}

template <class T> static T read() {
	T v;
	read_bytes(&v, sizeof v);
	return v;
}

static std::string read_string() {
	std::string s(read<uint32_t>(), 0);
	read_bytes(&s[0], s.size());
	return s;
}

// Memory is the bytes of a region, from the first to the last, between bytes that nothing may change. The first is as far from a multiple of
// LINE as on the device.
struct Memory {
	enum { FENCE = 4096, MARK = 0xa5, LINE = 16 };
	size_t first, n;
	std::vector<unsigned char> all;

	Memory(size_t n, unsigned at) : first(FENCE + at % LINE), n(n), all(first + n + FENCE, MARK) {}
	unsigned char *data() { return all.data() + first; }
	size_t size() const { return n; }
	bool intact() const {
		for (size_t i = 0; i < first; i++) {
			if (all[i] != MARK) {
				return false;
			}
		}
		for (size_t i = first + n; i < all.size(); i++) {
			if (all[i] != MARK) {
				return false;
			}
		}
		return true;
	}
};

// Reads a block of a kernel, and runs it if there is such a kernel. Returns what went wrong.
static std::string run(const std::map<std::string, Kernel> &kernels, std::list<Memory> &memories) {
	std::string name = read_string(), types = read_string();
	gridDim = read<dim3>();
	blockDim = read<dim3>();
	blockIdx = read<dim3>();
	uint32_t shared_bytes = read<uint32_t>(), descending = read<uint32_t>();
	// An argument is eight bytes: those of a number, or how many bytes a region has; where it begins, and the bytes, follow.
	std::vector<uint64_t> values;
	for (char type : types) {
		uint64_t v = read<uint64_t>();
		if (type == 'r' || type == 'w') {
			memories.emplace_back(v, read<uint32_t>());
			read_bytes(memories.back().data(), v);
			v = (uint64_t)memories.back().data();
		}
		values.push_back(v);
	}
	auto found = kernels.find(name);
	if (found == kernels.end()) {
		return "there is no such kernel";
	}
	if (found->second.types != types) {
		return "the source has parameters " + found->second.types + ", the launch " + types;
	}
	std::vector<void *> args;
	for (uint64_t &v : values) {
		args.push_back(&v);
	}
	running = &found->second;
	arguments = args.data();
	std::string fault = run_block(shared_bytes, descending);
	for (Memory &m : memories) {
		if (fault == "" && !m.intact()) {
			fault = "it wrote in front of a region or behind it";
		}
	}
	return fault;
}

// Runs blocks until the input ends.
static void serve(const std::map<std::string, Kernel> &kernels) {
	for (;;) {
		std::list<Memory> memories;
		std::string fault = run(kernels, memories);
		uint32_t n = fault.size();
		fwrite(&n, sizeof n, 1, stdout);
		fwrite(fault.data(), 1, n, stdout);
		if (n == 0) {
			for (Memory &m : memories) {
				fwrite(m.data(), 1, m.size(), stdout);
			}
		}
		fflush(stdout);
	}
}
