// Command gemm times products of package kernel on behalf of compare.py, which sets
// them beside OpenBLAS and MKL. It reads one request a line and answers each with one
// line; README.md says how to run the comparison.
//
//	request   form m n k threads seconds     nn 2048 512 429 2 0.02
//	answer    seconds of the fastest call     0.0043
//
// Other requests are "level", answered by the instruction set in use, and "peak
// threads", answered by GFLOP/s of a loop of fused multiply-adds on registers.
package main

import (
	"bufio"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"aibox/internal/kernel"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("gemm: ")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		answer, err := serve(lines.Text())
		if err != nil {
			log.Fatalf("request %q: %v", lines.Text(), err)
		}
		fmt.Println(answer)
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}

func serve(request string) (string, error) {
	if request == "level" {
		return kernel.Level(), nil
	}
	if rest, ok := strings.CutPrefix(request, "peak "); ok {
		var threads int
		if _, err := fmt.Sscan(rest, &threads); err != nil {
			return "", err
		}
		return fmt.Sprint(2e-9 * kernel.PeakFMA(threads)), nil
	}
	var p problem
	var seconds float64
	if _, err := fmt.Sscan(request, &p.form, &p.m, &p.n, &p.k, &p.threads, &seconds); err != nil {
		return "", err
	}
	if _, ok := forms[p.form]; !ok {
		return "", fmt.Errorf("no form %q", p.form)
	}
	return fmt.Sprint(p.time(seconds)), nil
}

// problem is a matrix product: C (m, n) = op(A) (m, k) · op(B) (k, n).
type problem struct {
	form             string
	m, n, k, threads int
}

// forms are the products of a layer: nn is the output of a layer, nt the gradient of its
// input, tn the gradient of its weights.
var forms = map[string]struct{ transA, transB bool }{
	"nn": {false, false},
	"nt": {false, true},
	"tn": {true, false},
}

// time returns the seconds of the fastest of the calls that fit into the given seconds.
func (p *problem) time(seconds float64) float64 {
	r := rand.New(rand.NewPCG(1, 0))
	matrix := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	form := forms[p.form]
	a, b, c := matrix(p.m*p.k), matrix(p.k*p.n), make([]float32, p.m*p.n)
	lda, ldb := p.k, p.n
	if form.transA {
		lda = p.m
	}
	if form.transB {
		ldb = p.k
	}
	kernel.SetThreads(p.threads)
	run := func() {
		kernel.Gemm(form.transA, form.transB, p.m, p.n, p.k, a, lda, b, ldb, false, c, p.n)
	}
	run() // warms caches and pools
	best := 0.0
	for begin := time.Now(); ; {
		start := time.Now()
		run()
		if d := time.Since(start).Seconds(); best == 0 || d < best {
			best = d
		}
		if time.Since(begin).Seconds() >= seconds {
			return best
		}
	}
}
