#include "check.h"
#include "kernel.h"

#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { GRANULE = 2, SHARED_BYTES = 64 << 10 };

__shared__ __align__(16) float shared[SHARED_BYTES / sizeof(float)];

enum : uint32_t { NOBODY = 0, SEVERAL = 0xffffffff, ATOMIC = 0xfffffffe };

// A thread of a block, between two __syncthreads: who uses memory. Blocks and intervals are numbered from 1 on, from launch to launch.
struct User {
	uint32_t block, interval, thread;
	uint32_t place; // in the program
};

struct Cell {
	User wrote, read;
	Use use;
};

// Memory that is checked.
struct Shadow {
	unsigned char *memory;
	std::vector<Cell> cells;

	bool has(const unsigned char *p) const { return p >= memory && p < memory + GRANULE * cells.size(); }
	Cell &of(const unsigned char *p) { return cells[(p - memory) / GRANULE]; }
};

static Shadow global, block_shared;
static size_t dynamic_bytes; // of shared, that the launch has asked for
static User now;
static bool running;
static const std::vector<char> *own_stack;
static User unwritten_by; // who has read what no thread had written

// A second write of the same bytes, which must not change them.
static struct {
	unsigned char *p;
	size_t n;
	unsigned char was[16];
	User by, before;
} again;

// All shared memory is what the linker puts into the program's block of memory for threads: what kernels declare, and shared.
static int find_shared(dl_phdr_info *info, size_t, void *) {
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_TLS) {
			block_shared.memory = (unsigned char *)info->dlpi_tls_data;
			block_shared.cells.resize((info->dlpi_phdr[i].p_memsz + GRANULE - 1) / GRANULE);
		}
	}
	return 1; // the program is the first
}

void check_launch(unsigned char *memory, size_t bytes) {
	if (!block_shared.memory) {
		dl_iterate_phdr(find_shared, nullptr);
	}
	global.memory = memory;
	global.cells.assign(bytes / GRANULE, Cell{});
	unwritten_by = {};
	again.p = nullptr;
}

void may_use(size_t from, size_t bytes, Use use) {
	for (size_t k = from; k < from + bytes; k += GRANULE) {
		global.cells[k / GRANULE].use = use;
	}
}

void check_block(unsigned char fill, size_t shared_bytes) {
	now.block++;
	now.interval++;
	dynamic_bytes = shared_bytes;
	memset(block_shared.memory, fill, GRANULE * block_shared.cells.size());
}

void check_thread(unsigned number, const std::vector<char> &stack) {
	now.thread = number;
	own_stack = &stack;
	running = true;
}

void check_synchronized() { now.interval++; }

bool reads_unwritten() { return unwritten_by.block != NOBODY; }

// The lines of the source that a place in the program belongs to.
static std::string lines(uint32_t place) {
	char command[128];
	snprintf(command, sizeof command, "addr2line -s -i -e /proc/%d/exe %#x", (int)getpid(), place - 1);
	std::string all;
	if (FILE *out = popen(command, "r")) {
		char line[256];
		while (fgets(line, sizeof line, out)) {
			line[strcspn(line, " \n")] = 0;
			all += (all == "" ? "" : " in ") + std::string(line);
		}
		pclose(out);
	}
	return all;
}

static std::string text(const char *format, ...) {
	char all[256];
	va_list args;
	va_start(args, format);
	vsnprintf(all, sizeof all, format, args);
	va_end(args);
	return all;
}

static std::string name(const User &u) {
	std::string who = u.thread == SEVERAL ? "several threads" : u.thread == ATOMIC ? "an atomic operation" : text("thread %u", u.thread);
	if (u.block == SEVERAL) {
		who = "threads of several blocks";
	} else if (u.block != now.block) {
		who += " of another block";
	}
	return who + " (" + lines(u.place) + ")";
}

std::string unwritten_reader() { return text("thread %u (%s)", unwritten_by.thread, lines(unwritten_by.place).c_str()); }

// Whether nothing orders two users.
static bool apart(const User &was, const User &is) {
	if (was.block == NOBODY || (was.thread == ATOMIC && is.thread == ATOMIC)) {
		return false;
	}
	return was.block != is.block || (was.interval == is.interval && was.thread != is.thread);
}

// Adds a user to one that stands for all before it.
static void add(User &all, const User &u) {
	if (all.block == NOBODY || all.block == u.block) {
		uint32_t thread = all.block == u.block && all.interval == u.interval && all.thread != u.thread ? SEVERAL : u.thread;
		all = u;
		all.thread = thread;
	} else {
		all.block = SEVERAL;
	}
}

[[noreturn]] static void stop_here(const std::string &fault) {
	running = false;
	stop(fault);
}

[[noreturn]] static void fail(const char *does, const unsigned char *p, size_t n, const User &is, const std::string &what) {
	stop_here(name(is) + text(" %s %zu bytes of ", does, n) + (block_shared.has(p) ? "shared memory" : where(p - global.memory)) + ", " + what);
}

[[noreturn]] static void fail_race(const char *does, const unsigned char *p, size_t n, const User &is, const User &was, const char *did) {
	fail(does, p, n, is, std::string("which were ") + did + " by " + name(was) + ", and nothing orders the two");
}

// Ends the thread if its last write has changed what another one has written.
static void settle() {
	if (again.p && memcmp(again.p, again.was, again.n) != 0) {
		fail_race("writes", again.p, again.n, again.by, again.before, "written");
	}
	again.p = nullptr;
}

void check_thread_waits() {
	settle();
	running = false;
}

static void check(void *at, size_t n, bool writes, uint32_t place, bool atomic = false) {
	if (!running) {
		return;
	}
	settle();
	unsigned char *p = (unsigned char *)at;
	if ((size_t)((char *)at - own_stack->data()) < own_stack->size()) {
		return;
	}
	User is = now;
	is.place = place;
	if (atomic) {
		is.thread = ATOMIC;
	}
	const char *does = writes ? "writes" : "reads";
	bool is_shared = block_shared.has(p);
	Shadow &shadow = is_shared ? block_shared : global;
	if (!shadow.has(p) || !shadow.has(p + n - 1)) {
		extern char __executable_start, _end;
		if (!writes && at >= &__executable_start && at < &_end) {
			return; // threadIdx and the like, and constants
		}
		fail(does, p, n, is, "outside of the arguments");
	}
	if (p >= (unsigned char *)shared + dynamic_bytes && p < (unsigned char *)shared + sizeof shared) {
		fail(does, p, n, is, text("of which the launch has %zu bytes", dynamic_bytes));
	}
	for (unsigned char *q = p; q < p + n; q += GRANULE) {
		Cell &cell = shadow.of(q);
		if (is_shared && cell.wrote.block != now.block && cell.read.block != now.block) {
			cell = {{}, {}, WRITE};
		}
		if (cell.use == NOTHING) {
			fail(does, q, n, is, "outside of the arguments");
		}
		if (writes && cell.use == READ) {
			fail(does, q, n, is, "which it may only read");
		}
		if (!writes && cell.use == WRITE && cell.wrote.block == NOBODY) {
			if (!is_shared) {
				fail(does, q, n, is, "which nobody has written");
			}
			if (!reads_unwritten()) {
				unwritten_by = is;
			}
		}
		if (apart(cell.wrote, is)) {
			if (!writes || atomic || cell.wrote.thread == ATOMIC || n > sizeof again.was) {
				fail_race(does, q, n, is, cell.wrote, "written");
			}
			again.p = p, again.n = n, again.by = is, again.before = cell.wrote;
			memcpy(again.was, p, n);
		}
		if (!writes) {
			add(cell.read, is);
			continue;
		}
		if (apart(cell.read, is)) {
			fail_race(does, q, n, is, cell.read, "read");
		}
		if (again.p) {
			add(cell.wrote, is);
		} else {
			cell.wrote = is;
		}
	}
}

#define PLACE ((uint32_t)(uintptr_t)__builtin_return_address(0))

void access_atomically(void *at, size_t bytes) { check(at, bytes, true, PLACE, true); }

#define ACCESSES(n) \
	void __tsan_read##n(void *p) { check(p, n, false, PLACE); } \
	void __tsan_write##n(void *p) { check(p, n, true, PLACE); } \
	void __tsan_unaligned_read##n(void *p) { check(p, n, false, PLACE); } \
	void __tsan_unaligned_write##n(void *p) { check(p, n, true, PLACE); }

// What g++ calls in front of what has no defined result (-fsanitize=undefined).
#define FAULT(check, what) \
	void __ubsan_handle_##check##_abort(void *) { \
		now.place = PLACE; \
		stop_here(name(now) + ": " + what); \
	}

extern "C" {
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
void __tsan_read_range(void *p, size_t n) { check(p, n, false, PLACE); }
void __tsan_write_range(void *p, size_t n) { check(p, n, true, PLACE); }
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
FAULT(type_mismatch_v1, "an address that is not a multiple of what is read or written there")
FAULT(out_of_bounds, "an element that the array does not have")
FAULT(add_overflow, "a sum that an integer does not hold")
FAULT(sub_overflow, "a difference that an integer does not hold")
FAULT(mul_overflow, "a product that an integer does not hold")
FAULT(negate_overflow, "a negative that an integer does not hold")
FAULT(divrem_overflow, "a division by zero, or a quotient that an integer does not hold")
FAULT(shift_out_of_bounds, "a shift by more bits than there are, or of bits that an integer does not hold")
FAULT(float_cast_overflow, "a number that an integer does not hold")
}
