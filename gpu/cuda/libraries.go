//go:build nvidia && linux && amd64

package cuda

// #include "fused.h"
// #include "libraries.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"aibox/gpu"
)

// library is a library that is loaded when it is first needed.
type library struct {
	name  string
	names func(driverMajor int) []string // of files, best first
	needs func(file string) string       // a library that it needs, from the same folder; nil: none
	find  func(unsafe.Pointer) *C.char   // finds its functions; returns the name of one that is missing

	tried   bool
	file    string // that was loaded
	problem string // why none was
}

var cublas = library{
	name: "cuBLAS",
	names: func(driverMajor int) []string {
		var names []string
		for major := min(driverMajor, 13); major >= 11; major-- {
			names = append(names, fmt.Sprintf("libcublas.so.%d", major))
		}
		return names
	},
	needs: func(file string) string { return strings.Replace(file, "libcublas.", "libcublasLt.", 1) },
	find:  func(l unsafe.Pointer) *C.char { return C.aibox_blas_load(l) },
}

// cublasLt is the one that cuBLAS has loaded, which must have been.
var cublasLt = library{
	name: "cuBLASLt",
	names: func(int) []string {
		return []string{strings.Replace(filepath.Base(cublas.file), "libcublas.", "libcublasLt.", 1)}
	},
	find: func(l unsafe.Pointer) *C.char { return C.aibox_lt_load(l) },
}

var nccl = library{
	name:  "NCCL",
	names: func(int) []string { return []string{"libnccl.so.2"} },
	find: func(l unsafe.Pointer) *C.char {
		// Of NCCL's algorithms, only rings sum in an order that depends only on the size and the
		// devices.
		if _, set := os.LookupEnv("NCCL_ALGO"); !set {
			_ = os.Setenv("NCCL_ALGO", "Ring")
		}
		return C.aibox_nccl_load(l)
	},
}

// libraryFolders are the folders in which libraries are searched: the system's, and those of
// NVIDIA's installer, which the system may not know.
func libraryFolders() []string {
	folders := []string{""}
	if home := os.Getenv("CUDA_HOME"); home != "" {
		folders = append(folders, home+"/lib64/")
	}
	return append(folders, "/usr/local/cuda/lib64/")
}

// load loads the library, unless that was tried before.
func (l *library) load(driver int) error {
	if !l.tried {
		l.tried = true
		l.open(l.names(driver / 1000))
	}
	if l.file == "" {
		return &gpu.Error{Kind: gpu.WrongDriver, Device: -1, Reason: l.name + " is missing: " + l.problem}
	}
	return nil
}

func (l *library) open(names []string) {
	var problems []string
	for _, name := range names {
		for _, folder := range libraryFolders() {
			file := folder + name
			if _, err := os.Stat(file); err == nil && l.needs != nil {
				// The library may not search its own folder, or LD_LIBRARY_PATH may take
				// precedence, but it uses a dependency that is already loaded. If there is none, it
				// reports that itself.
				_, _ = openLibrary(l.needs(file))
			}
			handle, problem := openLibrary(file)
			if handle == nil {
				problems = append(problems, problem)
				continue
			}
			missing := l.find(handle)
			if missing == nil {
				l.file = file
				return
			}
			problems = append(problems, fmt.Sprintf("%s has no function %s", file, C.GoString(missing)))
		}
	}
	l.problem = strings.Join(problems, "; ")
	if len(names) == 0 {
		l.problem = "the driver is older than CUDA 11"
	}
}

func openLibrary(file string) (unsafe.Pointer, string) {
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	var why *C.char
	handle := C.aibox_open(name, &why)
	defer C.free(unsafe.Pointer(why))
	return handle, C.GoString(why)
}
