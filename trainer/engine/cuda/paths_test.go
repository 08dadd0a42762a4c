package cuda_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/trainer/engine"
	"aibox/trainer/optim"
)

// watched is a platform that remembers the graphs which are captured.
type watched struct {
	gpu.Platform
	graphs []watchedGraph
}

// watchedGraph is the operations of a graph: their names and what they use.
type watchedGraph struct {
	name  string
	what  []string
	uses  [][]gpu.Arg
	after [][]int
}

type watchedDevice struct {
	gpu.Device
	platform *watched
}

type watchedStream struct {
	gpu.Stream
	platform *watched
	graph    *watchedGraph // that is being captured
}

func (p *watched) Open(number int) (gpu.Device, error) {
	d, err := p.Platform.Open(number)
	return &watchedDevice{d, p}, err
}

func (d *watchedDevice) NewStream(name string) (gpu.Stream, error) {
	s, err := d.Device.NewStream(name)
	return &watchedStream{Stream: s, platform: d.platform}, err
}

func (s *watchedStream) add(what string, uses ...gpu.Arg) {
	if g := s.graph; g != nil {
		g.what, g.uses = append(g.what, what), append(g.uses, slices.Clone(uses))
	}
}

func (s *watchedStream) Copy(dst, src gpu.Region) error {
	s.add("copy", gpu.Read(src), gpu.Write(dst))
	return s.Stream.Copy(dst, src)
}

func (s *watchedStream) Fill(dst gpu.Region, word uint32) error {
	s.add("fill", gpu.Write(dst))
	return s.Stream.Fill(dst, word)
}

func (s *watchedStream) Launch(k gpu.Kernel, g gpu.Geometry, args ...gpu.Arg) error {
	s.add(k.Name(), args...)
	return s.Stream.Launch(k, g, args...)
}

func (s *watchedStream) Multiply(p gpu.Product) error {
	if a, b, c, err := p.Regions(); err == nil {
		s.add(fmt.Sprintf("%v%v", &p, map[bool]string{true: " TransA"}[p.TransA]), p.Args(a, b, c)...)
	}
	return s.Stream.Multiply(p)
}

func (s *watchedStream) Capture(name string, enqueue func() error) (gpu.Graph, error) {
	g := &watchedGraph{name: name}
	s.graph = g
	made, err := s.Stream.Capture(name, enqueue)
	s.graph = nil
	g.after = gpu.Order(g.uses)
	s.platform.graphs = append(s.platform.graphs, *g)
	return made, err
}

// longest returns the longest path through a graph, where operations count as much as weight says.
func (g *watchedGraph) longest(weight func(i int) int) (path []int, length int) {
	length, last := 0, -1
	lengths, before := make([]int, len(g.uses)), make([]int, len(g.uses))
	for i := range g.uses {
		before[i] = -1
		for _, j := range g.after[i] {
			if lengths[j] > lengths[i] {
				lengths[i], before[i] = lengths[j], j
			}
		}
		if lengths[i] += weight(i); lengths[i] > length {
			length, last = lengths[i], i
		}
	}
	for ; last >= 0; last = before[last] {
		path = append(path, last)
	}
	slices.Reverse(path)
	return path, length
}

// bytes is how many bytes the regions of an operation have.
func (g *watchedGraph) bytes(i int) int {
	n := 0
	for _, u := range g.uses[i] {
		if u.IsRegion() {
			n += u.Region.Bytes()
		}
	}
	return n
}

// TestPaths: the graphs of a step of the DLRM of bench/speed, with rows on the device, are shorter
// than they have operations. The log has the operations of each, those of the longest path marked.
func TestPaths(t *testing.T) {
	const examples = 512
	for _, c := range []struct {
		precision engine.Precision
		most      int // of operations that come one behind the other
	}{{engine.TF32, 20}, {engine.BF16, 20}} {
		b := newBench(t, setup{
			spec: benchSpec(), dense: optim.DenseConfig{Kind: "sgd", LearningRate: 0.1}, admitted: true, held: true, batches: 1, examples: examples, precision: c.precision,
		})
		p := &watched{Platform: fusing(1, 5, 0)}
		e := b.open(t, p, devices(1))
		b.begin(t)
		for range 3 { // the third one is of the shape of the first
			if err := e.Train(engine.Batch{Batch: &b.pass.Batches[0]}, func(*engine.Result) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.End(); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		operations, longest, bytes, heaviest := 0, 0, 0, 0
		for _, g := range p.graphs {
			path, length := g.longest(func(int) int { return 1 })
			_, heavy := g.longest(g.bytes)
			operations, longest, heaviest = operations+len(g.uses), longest+length, heaviest+heavy
			var text strings.Builder
			for i, what := range g.what {
				bytes += g.bytes(i)
				mark := " "
				if slices.Contains(path, i) {
					mark = "*"
				}
				fmt.Fprintf(&text, "\n%s %2d %s, %d KB, after %v", mark, i, what, g.bytes(i)/1000, g.after[i])
			}
			t.Logf("%v, graph %q: %d operations, %d on the longest path%s", c.precision, g.name, len(g.uses), length, &text)
		}
		t.Logf("%v: %d operations, %d on the longest paths; they use %d KB, %d KB on the heaviest paths", c.precision, operations, longest, bytes/1000, heaviest/1000)
		if longest > c.most {
			t.Errorf("%v: %d operations come one behind the other, want %d", c.precision, longest, c.most)
		}
	}
}
