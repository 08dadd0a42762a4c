# README.md names `make demo` and `make test`; `make help` lists all targets.

GO        ?= go
BIN       := bin
TOOLS     := $(CURDIR)/$(BIN)/tools
PKGS      := ./...
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS   := -X main.version=$(VERSION)
# Limits for each package's tests, that only tests that hang reach, also on a slow machine
# that is busy. The cluster tests start JVMs.
TEST_TIMEOUT ?= 90m
# The race detector makes everything several times slower.
RACE_TIMEOUT ?= 3h

# How many times "make stress" kills a process in each of its tests, how many random jobs it
# kills, and how many random sequences it runs.
KILLS ?= 200
CRASHES ?= 1000
SEEDS ?= 3000

.PHONY: help build demo test race invariants stress bench bench-gemm bench-peers bench-table kernels lint tools clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/aibox, without cgo: one static file that runs on any Linux
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/aibox ./cmd/aibox

# CUDA's compiler, and the oldest instruction set for which it makes PTX. Drivers compile PTX for their
# device when it is loaded. The first line of the output says of which sources it is made.
# The compiler says that its PTX has its own version of the language, 7.8, which only drivers of
# CUDA 11.8 and later read; the kernels use nothing that 7.0 (CUDA 11.0) has not.
NVCC ?= nvcc
MAKE_PTX = $(NVCC) -std=c++17 -O3 -fmad=false -arch=compute_70 -ptx
OLD_PTX := s/^\.version 7\.8$$/.version 7.0/

kernels: ## compile gpu/kernels/*.cu to aibox.ptx, for CUDA devices; needs nvcc (CUDA 11.8)
	@mkdir -p $(BIN)
	cd gpu/kernels && export LC_ALL=C && \
	for f in *.cu; do echo "#include \"$$f\""; done > $(CURDIR)/$(BIN)/aibox.cu && \
	$(MAKE_PTX) -I. -o $(CURDIR)/$(BIN)/aibox.ptx $(CURDIR)/$(BIN)/aibox.cu && \
	{ echo "// sources $$(cat *.h *.cu | sha256sum | cut -d' ' -f1)" && \
	sed '$(OLD_PTX)' $(CURDIR)/$(BIN)/aibox.ptx; } > aibox.ptx

demo: build ## generate a click log, train on it, evaluate
	@rm -rf demo
	$(BIN)/aibox generate configs/demo.yaml
	$(BIN)/aibox train configs/demo.yaml

test: ## run every test, and say what was skipped and why (tests of HDFS and Kerberos need Java, Maven and a KDC)
	@$(GO) run ./internal/testskips -timeout $(TEST_TIMEOUT) $(PKGS)

race: ## run every test under the race detector
	$(GO) test -race -short -timeout $(RACE_TIMEOUT) $(PKGS)

invariants: ## test the sparse table with its expensive checks compiled in
	$(GO) test -short -tags invariants -timeout $(TEST_TIMEOUT) ./sparsetable/...

stress: ## test tables with SEEDS random sequences (3000), a failure of every operation, also of devices, and KILLS kills by SIGKILL (200), also of the program; kill CRASHES random jobs (1000), and run as many random sequences of nights
	AIBOX_TEST_SEED=random AIBOX_TEST_FAULTS=every AIBOX_TEST_KILLS=$(KILLS) AIBOX_TEST_SEEDS=$(SEEDS) $(GO) test -count=1 -run '^(TestKill|TestMemory|TestSSDRandom|TestSSDRandomArriving|TestSSDRandomLoss|TestSSDFaults|TestSSDStress|TestFlips|TestSSDRestoreRaces|TestSSDImportFails|TestSSDImportCrash|TestSSDDeltas)$$' -v -timeout 3h ./sparsetable ./sparsetable/internal/ssd
	AIBOX_TEST_SEED=random AIBOX_TEST_KILLS=$(KILLS) $(GO) test -count=1 -run '^TestKill$$' -v -timeout 3h ./cmd/aibox
	AIBOX_TEST_SEED=random AIBOX_TEST_KILLS=$(KILLS) $(GO) test -count=1 -run '^TestOperationsOnSSD' -v -timeout 3h ./trainer
	AIBOX_TEST_SEED=random AIBOX_TEST_KILLS=$(CRASHES) $(GO) test -count=1 -run '^(TestCrash|TestNightsModel|TestPrioritySavesAreKilled)$$' -v -timeout 12h ./trainer
	AIBOX_TEST_SEED=random AIBOX_TEST_FAULTS=every $(GO) test -count=1 -run '^(TestFaults|TestHeldPassesFaults)$$' -v -timeout 3h ./trainer/engine/cuda
	AIBOX_TEST_SEED=random AIBOX_TEST_KILLS=$(KILLS) $(GO) test -count=1 -run '^(TestTableArrivesFromHDFS|TestSnapshotsToHDFS)$$' -v -timeout 12h ./trainer

bench: ## run the Go benchmarks, with shares of what the machine can do (%peak, %bandwidth)
	$(GO) test -run '^$$' -bench . -benchmem $(PKGS)

bench-table: ## compare embedding stores; ARGS="--quick --dir /mnt/ssd", see bench/table/README.md
	$(GO) run $(if $(wildcard /usr/include/rocksdb/c.h),-tags rocksdb) ./bench/table $(ARGS)

bench-gemm: ## compare matrix products with OpenBLAS and MKL; ARGS=--quick, see bench/gemm/README.md
	python3 bench/gemm/compare.py $(ARGS)

bench-peers: ## compare the speed of training with PyTorch; ARGS=--quick, see bench/speed/README.md
	python3 bench/speed/compare.py $(ARGS)

tools: $(TOOLS)/.done

$(TOOLS)/.done: tools/go.mod tools/go.sum
	@mkdir -p $(TOOLS)
	cd tools && for try in 1 2 3; do GOBIN=$(TOOLS) $(GO) install tool && exit; sleep 5; done; exit 1
	@touch $@

lint: tools ## gofmt, go vet, staticcheck, errcheck, ineffassign, unparam, govulncheck
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt -w these:"; echo "$$out"; exit 1; fi
	$(GO) vet $(PKGS)
	$(TOOLS)/staticcheck $(PKGS)
	$(TOOLS)/errcheck -exclude tools/errcheck.txt $(PKGS)
	$(TOOLS)/ineffassign $(PKGS)
	$(TOOLS)/unparam $(PKGS)
	tools/govulncheck.sh $(TOOLS)/govulncheck $(PKGS)

clean: ## remove what was built and generated
	rm -rf $(BIN) demo

# NVIDIA devices; docs/gpu.md says more.
.PHONY: build-cuda test-check gputest-kernels lint-cuda

# CUDA's headers, and libcuda.so to link with, may be where NVIDIA or where Debian puts them. gorgonia.org/cu looks in this order, too.
CUDA_H := $(firstword $(wildcard /usr/local/cuda/include/cuda.h /usr/include/cuda.h))
CUDA_VERSION = $(shell awk '$$2 == "CUDA_VERSION" { print $$3 }' $(CUDA_H))
ifneq ($(CUDA_H),/usr/include/cuda.h)
build-cuda lint-cuda: export CGO_CFLAGS = -g -O2 -I$(dir $(CUDA_H))
build-cuda lint-cuda: export CGO_LDFLAGS = -g -O2 -L$(dir $(CUDA_H))../lib64/stubs
endif

# What gpu/check.sh runs besides programs. It goes where these are.
CHECK_FILES := $(wildcard bench/device/*.py) $(addprefix bench/speed/,job.yaml models.py sides.py torch_cuda.py torch_side.py) bench/peers/zoo_torch.py
CHECK := $(BIN)/gpu-check

build-cuda: ## build bin/aibox-cuda, with cgo, which can use NVIDIA devices, and bin/gpu-check, which is to be copied to a machine that has one, to run check.sh there; needs the headers of CUDA 11.8 or 12 and a C compiler
	@if [ -z "$(CUDA_H)" ]; then echo "There is no cuda.h in /usr/local/cuda/include or /usr/include. Install CUDA 11.8 or 12; on Debian 12: apt install nvidia-cuda-dev, from non-free."; exit 1; fi
	@if [ "$(or $(CUDA_VERSION),0)" -ge 13000 ]; then echo "gorgonia.org/cu does not compile with $(CUDA_H), which is of CUDA 13 or later. Install the headers of CUDA 11.8 or 12, and say where cuda.h is, as in: make build-cuda CUDA_H=/usr/local/cuda-12.9/include/cuda.h"; exit 1; fi
	@rm -rf $(CHECK); mkdir -p $(CHECK)
	CGO_ENABLED=1 $(GO) build -tags nvidia -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/aibox-cuda ./cmd/aibox
	CGO_ENABLED=1 $(GO) build -tags nvidia -trimpath -ldflags '-s -w' -o $(CHECK)/speed ./bench/speed
	CGO_ENABLED=1 $(GO) test -c -tags nvidia -trimpath -o $(CHECK)/cuda.test ./gpu/cuda
	CGO_ENABLED=1 $(GO) test -c -tags nvidia -trimpath -o $(CHECK)/kernels.test ./gpu/kernels
	strip -o $(CHECK)/aibox-cuda $(BIN)/aibox-cuda
	cp --parents $(CHECK_FILES) $(CHECK)
	cp gpu/check.sh $(CHECK)
	tar -C $(BIN) -czf $(BIN)/gpu-check.tar.gz $(notdir $(CHECK))

# The parts of the check that need no device, so that the script is right when there is one.
test-check: ## run gpu/check.sh on the CPU, with small sizes and without PyTorch
	@rm -rf $(BIN)/check; mkdir -p $(BIN)/check
	$(GO) build -o $(BIN)/check/ ./cmd/aibox ./bench/speed
	cp --parents $(CHECK_FILES) $(BIN)/check
	cp gpu/check.sh $(BIN)/check
	$(BIN)/check/check.sh --engine cpu --quick --no-torch

gputest-kernels: ## compile the kernels of package gputest, and the one of package cuda, as those of gpu/kernels
	@set -e; for kernels in gpu/gputest/kernels gpu/cuda/sum; do \
		echo "nvcc $$kernels.cu"; \
		$(MAKE_PTX) -o $$kernels.ptx $$kernels.cu; \
		sed -i -e '$(OLD_PTX)' -e "1i // sources $$(sha256sum < $$kernels.cu | cut -d' ' -f1)" $$kernels.ptx; \
	done

lint-cuda: tools ## go vet, staticcheck, errcheck and unparam of what is built with the tag nvidia
	$(GO) vet -tags nvidia ./gpu/... ./cmd/...
	$(TOOLS)/staticcheck -tags nvidia ./gpu/... ./cmd/...
	$(TOOLS)/errcheck -tags nvidia -exclude tools/errcheck.txt ./gpu/... ./cmd/...
	GOFLAGS=-tags=nvidia $(TOOLS)/unparam ./gpu/... ./cmd/...
