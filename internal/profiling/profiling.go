package profiling

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"

	"aibox/internal/errkind"
)

// Names of the files.
const (
	cpuName    = "cpu.pprof"
	heapName   = "heap.pprof"
	allocsName = "allocs.pprof"
	mutexName  = "mutex.pprof"
	blockName  = "block.pprof"
	traceName  = "trace.out"
)

// Files are the names of the files that a session leaves in its directory. Where devices compute,
// it leaves KernelsFile, too.
var Files = []string{allocsName, blockName, cpuName, heapName, mutexName, traceName}

// KernelsFile is the name of the file with the times of kernels on devices.
const KernelsFile = "kernels.tsv"

const (
	// One in mutexFraction waits for a lock is recorded, with its stack. Jobs rarely wait for
	// locks, so this has no measurable cost.
	mutexFraction = 10
	// Waits of at least this length are always recorded, shorter ones with a probability
	// proportional to their length.
	blockNanoseconds = 50_000
	// DefaultTraceBytes holds some minutes of a job on a few cores. The browser view of
	// `go tool trace` becomes slow with more.
	DefaultTraceBytes = 256 << 20
)

// Options are the settings of a session.
type Options struct {
	Dir        string       // is created; must not hold files of another session: see FreeDir
	TraceBytes int64        // the execution trace ends at this size; 0: DefaultTraceBytes
	Logger     *slog.Logger // nil: slog.Default()
	// Kernels writes KernelsFile when the session ends; nil: there is none.
	Kernels func(io.Writer) error
}

// Session is a recording. A process can have only one at a time.
type Session struct {
	dir   string
	log   *slog.Logger
	cpu   *os.File
	trace *traceFile
	heap  *heapWatch

	kernels func(io.Writer) error
}

// FreeDir returns a directory for a session's files: dir or, if it holds files of another session,
// the first of dir/2, dir/3 and so on that holds none. The command of a killed job, which has left
// files, can thus be run again.
func FreeDir(dir string) (string, error) {
	for n := 1; ; n++ {
		at := dir
		if n > 1 {
			at = filepath.Join(dir, strconv.Itoa(n))
		}
		found, err := held(at)
		if err != nil || len(found) == 0 {
			return at, err
		}
	}
}

// Start begins to record. It refuses a directory that holds one of the Files, or KernelsFile, so that
// the profiles of an earlier run are not lost.
func Start(o Options) (*Session, error) {
	if o.TraceBytes == 0 {
		o.TraceBytes = DefaultTraceBytes
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s := &Session{dir: o.Dir, log: o.Logger, kernels: o.Kernels}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("directory for profiles: %w", err)
	}
	found, err := held(s.dir)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return nil, errkind.As(errkind.Usage, fmt.Errorf("%s holds profiles of another run (%s): name another directory, or delete them", s.dir, strings.Join(found, ", ")))
	}
	if err := s.start(o.TraceBytes); err != nil {
		return nil, errors.Join(fmt.Errorf("profiles in %s: %w", s.dir, err), s.abandon())
	}
	return s, nil
}

// held are the names of the profiles that a directory holds, which need not exist.
func held(dir string) (found []string, err error) {
	for _, name := range append(Files[:len(Files):len(Files)], KernelsFile) {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			found = append(found, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("directory for profiles: %w", err)
		}
	}
	return found, nil
}

func (s *Session) start(traceBytes int64) error {
	cpu, err := s.create(cpuName)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return errors.Join(err, discard(cpu))
	}
	s.cpu = cpu
	f, err := s.create(traceName)
	if err != nil {
		return err
	}
	if s.trace, err = startTrace(f, traceBytes, s.log); err != nil {
		return err
	}
	runtime.SetMutexProfileFraction(mutexFraction)
	runtime.SetBlockProfileRate(blockNanoseconds)
	s.heap = watchHeap()
	return nil
}

// abandon ends a session that could not be started.
func (s *Session) abandon() error {
	if s.cpu == nil {
		return nil
	}
	pprof.StopCPUProfile()
	return discard(s.cpu)
}

// discard deletes a file that is of no use.
func discard(f *os.File) error {
	_ = f.Close() // nobody reads it
	return os.Remove(f.Name())
}

// Stop ends the recording and completes the files.
func (s *Session) Stop() error {
	pprof.StopCPUProfile()
	faults := []error{s.cpu.Close(), s.trace.stop()}
	runtime.SetMutexProfileFraction(0)
	runtime.SetBlockProfileRate(0)
	faults = append(faults,
		s.write(heapName, s.heap.stop()),
		s.lookup(allocsName, "allocs"), s.lookup(mutexName, "mutex"), s.lookup(blockName, "block"))
	if s.kernels != nil {
		faults = append(faults, s.fill(KernelsFile, s.kernels))
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("profiles in %s are incomplete: %w", s.dir, err)
	}
	s.log.Info("profiles are written; `go tool pprof` and `go tool trace` show them", "dir", s.dir)
	return nil
}

// lookup writes one of the profiles that the runtime keeps by name.
func (s *Session) lookup(name, profile string) error {
	return s.fill(name, func(w io.Writer) error { return pprof.Lookup(profile).WriteTo(w, 0) })
}

func (s *Session) write(name string, data []byte) error {
	return s.fill(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// fill makes a file with what write writes.
func (s *Session) fill(name string, write func(io.Writer) error) error {
	f, err := s.create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// create creates a file, which must not exist: two runs may have started at the same time.
func (s *Session) create(name string) (*os.File, error) {
	return os.OpenFile(s.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

func (s *Session) path(name string) string { return filepath.Join(s.dir, name) }
