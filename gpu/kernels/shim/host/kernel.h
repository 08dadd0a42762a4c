// What host.cc needs to know of a kernel, made where its source is compiled.
#pragma once

#include "cuda.h"

#include <map>
#include <string>
#include <type_traits>
#include <utility>

// What is not a kernel's own access to memory: see check.h.
#define UNCHECKED __attribute__((no_sanitize("thread")))

// Kernel is a kernel with the types of its parameters: r and w for a pointer to what is const or not,
// i, l and f for int, long long and float.
struct Kernel {
	std::string types;
	void (*function)();
	void (*call)(void (*function)(), void **args); // with the addresses of its arguments
};

// All kernels, by name: build.go writes the list.
extern const std::map<std::string, Kernel> kernels;

template <class T> static char type_letter() {
	if (std::is_pointer<T>::value) {
		return std::is_const<typename std::remove_pointer<T>::type>::value ? 'r' : 'w';
	}
	return std::is_same<T, int>::value ? 'i' : std::is_same<T, long long>::value ? 'l' : std::is_same<T, float>::value ? 'f' : '?';
}

template <class... A, size_t... I> UNCHECKED static void apply(void (*f)(A...), void **args, std::index_sequence<I...>) {
	f(*(A *)args[I]...);
}

template <class... A> UNCHECKED static void call(void (*f)(), void **args) {
	apply((void (*)(A...))f, args, std::index_sequence_for<A...>());
}

template <class... A> static Kernel kernel(void (*f)(A...)) {
	return {{type_letter<A>()...}, (void (*)())f, call<A...>};
}
