//go:build nvidia && linux

// Each function of the driver is a jump through a word of data, which driver.c points to the
// function of libcuda.so.1 once that is loaded. Until then it points to a function that
// returns an error, or that of cuInit to one that succeeds: package cu calls it before main, and
// would end the process otherwise.

#define F(name) \
	.text; .globl name; .type name, @function; name: jmp *slot_##name(%rip); .size name, .-name; \
	.data; .balign 8; .globl slot_##name; .hidden slot_##name; slot_##name: .quad aibox_not_loaded;
#include "symbols.h"
#undef F

	.section .note.GNU-stack, "", @progbits
