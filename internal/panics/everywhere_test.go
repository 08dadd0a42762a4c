package panics

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// elsewhere are goroutines whose panics are caught by what they call.
var elsewhere = []string{
	"internal/kernel/parallel.go: work", // call.take
	"pipeline/pipeline.go: func",        // Pipeline.runStage
}

// TestEveryGoroutine: each goroutine that the program starts catches its panics, because Go would
// end the process with the exit code of a wrong command line. In its body, or in that of the one
// function that it calls, something of this package, or recover, occurs.
func TestEveryGoroutine(t *testing.T) {
	root := filepath.Join("..", "..")
	leave := []string{"bench", "internal/hdfstest", "internal/panics", "sparsetable/tabletest", "sparsetable/internal/blockio/blocktest"}
	found := 0
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		if slices.Contains(leave, name) || strings.HasPrefix(d.Name(), ".") && name != "." || d.Name() == "testdata" {
			return filepath.SkipDir
		}
		n, err := checkGoroutines(t, dir, name)
		found += n
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 20 {
		t.Errorf("%d goroutines are found; the test shows nothing", found)
	}
}

// checkGoroutines checks a package and returns how many goroutines it starts.
func checkGoroutines(t *testing.T, dir, name string) (found int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	files := token.NewFileSet()
	var parsed []*ast.File
	bodies := map[string]*ast.BlockStmt{} // of functions and methods
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return 0, err
		}
		parsed = append(parsed, f)
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				bodies[f.Name.Name] = f.Body
			}
		}
	}
	check := func(at token.Pos, f ast.Expr) {
		found++
		what, body := "func", (*ast.BlockStmt)(nil)
		if lit, ok := f.(*ast.FuncLit); ok {
			body = lit.Body
			if call := onlyCall(body); call != nil {
				body = bodies[called(call.Fun)]
			}
		} else {
			what = called(f)
			body = bodies[what]
		}
		place := files.Position(at)
		if file := filepath.ToSlash(filepath.Join(name, filepath.Base(place.Filename))); !catches(body) && !slices.Contains(elsewhere, file+": "+what) {
			t.Errorf("%s:%d: a panic of this goroutine ends the process with exit code 2; start it by panics.Go, or defer panics.Exit in it", file, place.Line)
		}
	}
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				check(n.Pos(), n.Call.Fun)
			case *ast.CallExpr:
				s, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || s.Sel.Name != "Go" || len(n.Args) != 1 {
					break // panics.Go has two arguments
				}
				check(n.Pos(), n.Args[0])
			}
			return true
		})
	}
	return found, nil
}

// onlyCall returns the call that is all of a body, or nil.
func onlyCall(body *ast.BlockStmt) *ast.CallExpr {
	if len(body.List) != 1 {
		return nil
	}
	s, ok := body.List[0].(*ast.ExprStmt)
	if !ok {
		return nil
	}
	call, _ := s.X.(*ast.CallExpr)
	return call
}

// called is the name of a function or method.
func called(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// catches reports whether something in the body is of this package, or is recover.
func catches(body *ast.BlockStmt) (yes bool) {
	if body == nil {
		return false
	}
	ast.Inspect(body, func(n ast.Node) bool {
		if n, ok := n.(*ast.Ident); ok {
			yes = yes || n.Name == "panics" || n.Name == "recover"
		}
		return !yes
	})
	return yes
}
