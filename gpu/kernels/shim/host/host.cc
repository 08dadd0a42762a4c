// A program that runs kernels on the CPU. For each launch it reads the kernel's name, the grid, the order of blocks, and
// the arguments, with the bytes of regions, from its standard input, and writes what went
// wrong, or the bytes of the regions afterwards, to its standard output. shim.go is the other side.
//
// Each thread of a block is a coroutine. All run in turn until they end or come to __syncthreads, and
// again from there. check.h says what is checked meanwhile.

#include "check.h"
#include "kernel.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <vector>

enum { MOST_THREADS = 1024, STACK_BYTES = 64 << 10 };

dim3 gridDim, blockDim, blockIdx, threadIdx;

struct Thread {
	jmp_buf at;
	std::vector<char> stack; // none before it first runs
	enum { READY, WAITS, ENDED } state;
	const char *file; // of the __syncthreads where it waits
	int line;
};

static std::vector<Thread> threads(MOST_THREADS);
static Thread *present;
static jmp_buf scheduler;
static const Kernel *kernel_of_launch;
static void **arguments;
static std::string fault; // "" if there is none

// Unlike swapcontext, these need no system calls, which would take most of the time.
static void go_on(Thread &t, void (*begin)()) {
	present = &t;
	if (_setjmp(scheduler)) {
		return;
	}
	if (!t.stack.empty()) {
		_longjmp(t.at, 1);
	}
	t.stack.resize(STACK_BYTES);
	ucontext_t context;
	getcontext(&context);
	context.uc_stack.ss_sp = t.stack.data();
	context.uc_stack.ss_size = t.stack.size();
	makecontext(&context, begin, 0);
	setcontext(&context);
}

static void let_others_run() {
	if (!_setjmp(present->at)) {
		_longjmp(scheduler, 1);
	}
}

void synchronize(const char *file, int line) {
	check_thread_waits();
	present->state = Thread::WAITS;
	present->file = file, present->line = line;
	let_others_run();
}

void stop(const std::string &what) {
	fault = what;
	_longjmp(scheduler, 1);
}

// A thread of each block.
static void run_threads() {
	for (;;) {
		kernel_of_launch->call(kernel_of_launch->function, arguments);
		check_thread_waits();
		present->state = Thread::ENDED;
		let_others_run();
	}
}

// Runs the threads of a block until they wait or end. Returns how many wait.
static unsigned run_interval(unsigned n) {
	unsigned waiting = 0;
	const Thread *first = nullptr;
	for (unsigned t = 0; t < n; t++) {
		Thread &thread = threads[t];
		threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
		check_thread(t, thread.stack);
		go_on(thread, run_threads);
		if (fault != "") {
			break;
		}
		if (thread.state == Thread::ENDED) {
			continue;
		}
		waiting++;
		if (first && (first->line != thread.line || strcmp(first->file, thread.file) != 0)) {
			fault = "threads of a block wait in different lines";
		}
		first = &thread;
	}
	if (fault == "" && waiting > 0 && waiting < n) {
		fault = "some threads of a block have ended where others wait for them";
	}
	return waiting;
}

static void run_block(unsigned shared_bytes, unsigned char fill) {
	unsigned n = blockDim.x * blockDim.y * blockDim.z;
	if (n > MOST_THREADS) {
		fault = "the block is too large";
		return;
	}
	check_block(fill, shared_bytes);
	while (run_interval(n) > 0 && fault == "") {
		check_synchronized();
	}
	if (fault != "") {
		for (Thread &t : threads) {
			t.stack.clear(); // it is somewhere in the kernel
		}
	}
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

// Region is an argument: rows of bytes, some distance apart, somewhere in the memory of the launch.
struct Region {
	Use use;
	uint32_t width, rows, pitch;
	size_t bytes, from;
	unsigned argument;
};

// Launch is a kernel, its arguments, and the memory that has the bytes of its regions.
struct Launch {
	enum { FENCE = 256, LINE = 16 };

	std::string name, types;
	std::vector<dim3> order; // of blocks
	uint32_t shared_bytes;
	std::vector<uint64_t> values;
	std::vector<Region> regions;
	std::vector<unsigned char> memory;

	// An argument is eight bytes: those of a number, or how many bytes a region has; its rows and how far the first is from a multiple of LINE on the
	// device follow, and then the bytes.
	void read_all() {
		name = read_string(), types = read_string();
		gridDim = read<dim3>();
		blockDim = read<dim3>();
		shared_bytes = read<uint32_t>();
		order.resize(read<uint32_t>());
		read_bytes(order.data(), order.size() * sizeof(dim3));
		memory.resize(FENCE);
		for (char type : types) {
			uint64_t v = read<uint64_t>();
			if (type == 'r' || type == 'w' || type == 'u') {
				Region r = {type == 'r' ? READ : type == 'w' ? WRITE : UPDATE, read<uint32_t>(), read<uint32_t>(), read<uint32_t>(), v, 0, (unsigned)values.size()};
				r.from = (memory.size() + LINE - 1) / LINE * LINE + read<uint32_t>() % LINE;
				memory.resize(r.from + r.bytes + FENCE);
				read_bytes(&memory[r.from], r.bytes);
				regions.push_back(r);
				v = r.from;
			}
			values.push_back(v);
		}
		memory.resize((memory.size() + LINE - 1) / LINE * LINE);
	}

	// Runs all blocks on the memory, in which shared memory begins with what fill says.
	void run(unsigned char fill) {
		auto found = kernels.find(name);
		if (found == kernels.end()) {
			fault = "there is no such kernel";
			return;
		}
		std::string want = types;
		for (char &type : want) {
			type = type == 'u' ? 'w' : type;
		}
		if (found->second.types != want) {
			fault = "the source has parameters " + found->second.types + ", the launch " + want;
			return;
		}
		check_launch(memory.data(), memory.size());
		std::vector<uint64_t> given = values;
		std::vector<void *> args;
		size_t region = 0;
		for (size_t k = 0; k < given.size(); k++) {
			if (types[k] == 'r' || types[k] == 'w' || types[k] == 'u') {
				const Region &r = regions[region++];
				for (size_t row = 0; row < r.rows; row++) {
					may_use(r.from + row * r.pitch, r.width, r.use);
				}
				given[k] += (uint64_t)memory.data();
			}
			args.push_back(&given[k]);
		}
		kernel_of_launch = &found->second;
		arguments = args.data();
		for (const dim3 &block : order) {
			blockIdx = block;
			run_block(shared_bytes, fill);
			if (fault != "") {
				return;
			}
		}
	}

	// Runs it once, and again if threads have read shared memory that none had written: its result must be the same, whatever that memory holds.
	void run() {
		std::vector<unsigned char> before = memory;
		run(0xff); // NaN
		if (fault != "" || !reads_unwritten()) {
			return;
		}
		memory.swap(before);
		run(0x3f); // 0.747
		if (fault == "" && memory != before) {
			fault = "the result depends on shared memory that no thread has written, which " + unwritten_reader() + " reads";
		}
	}

	void write_all() const {
		uint32_t n = fault.size();
		fwrite(&n, sizeof n, 1, stdout);
		fwrite(fault.data(), 1, n, stdout);
		for (const Region &r : regions) {
			if (n == 0) {
				fwrite(&memory[r.from], 1, r.bytes, stdout);
			}
		}
		fflush(stdout);
	}
};

static const Launch *launched;

std::string where(size_t byte) {
	for (const Region &r : launched->regions) {
		if (byte < r.from + r.bytes + Launch::FENCE / 2) {
			return "argument " + std::to_string(r.argument) + " at " + std::to_string((long)(byte - r.from));
		}
	}
	return "no argument";
}

// Runs launches until the input ends.
int main() {
	for (;;) {
		Launch launch;
		launched = &launch;
		launch.read_all();
		fault.clear();
		launch.run();
		launch.write_all();
	}
}
