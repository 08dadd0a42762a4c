package listing

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"aibox/reader/source/internal/fsys"
)

// A glob is a path pattern: a list of alternatives, one for each choice in its braces.
// Each alternative is matched segment by segment, so that only directories that can
// match are listed. Names that start with . or _ are matched only by segments that
// start with the same character. No library is used because none treats _ that way.
type glob struct {
	alternatives []string
}

// maxAlternatives bounds brace expansion: {0,1}{0,1}… doubles with each pair.
const maxAlternatives = 4096

// GlobSigns are the characters that make a path a pattern.
const GlobSigns = `*?[{`

// anyDepth is a segment that stands for any number of directories, including none.
const anyDepth = "**"

// HasGlob says whether a path is a pattern, unless there is a file of that name.
func HasGlob(p string) bool { return strings.ContainsAny(p, GlobSigns) }

func compileGlob(p string) (*glob, error) {
	alternatives, err := expandBraces(p)
	if err != nil {
		return nil, err
	}
	for _, a := range alternatives {
		for segment := range strings.SplitSeq(a, "/") {
			if _, err := path.Match(segment, ""); err != nil {
				return nil, fmt.Errorf("bad pattern %q: unclosed [ or trailing backslash", segment)
			}
		}
	}
	return &glob{alternatives}, nil
}

// expandBraces turns a{b,c}d into abd, acd; braces may nest.
func expandBraces(p string) ([]string, error) {
	done := []string{}
	todo := []string{p}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		open := strings.IndexByte(s, '{')
		if open < 0 {
			done = append(done, s)
			continue
		}
		depth, start := 0, open+1
		var choices []string
		end := -1
		for i := open; i < len(s) && end < 0; i++ {
			switch s[i] {
			case '{':
				depth++
			case '}':
				if depth--; depth == 0 {
					choices = append(choices, s[start:i])
					end = i
				}
			case ',':
				if depth == 1 {
					choices = append(choices, s[start:i])
					start = i + 1
				}
			}
		}
		if end < 0 {
			return nil, errors.New("unclosed { in pattern")
		}
		if len(done)+len(todo)+len(choices) > maxAlternatives {
			return nil, fmt.Errorf("pattern has more than %d alternatives", maxAlternatives)
		}
		for _, c := range choices {
			todo = append(todo, s[:open]+c+s[end+1:])
		}
	}
	slices.Sort(done)
	return slices.Compact(done), nil
}

// match lists what the pattern matches, each path once, in byte order.
func (g *glob) match(ctx context.Context, fs Lister) ([]fsys.Entry, error) {
	var found []fsys.Entry
	for _, a := range g.alternatives {
		base := ""
		if strings.HasPrefix(a, "/") {
			base, a = "/", strings.TrimLeft(a, "/")
		}
		var err error
		if found, err = matchSegments(ctx, fs, found, base, strings.Split(a, "/")); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b fsys.Entry) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(found, func(a, b fsys.Entry) bool { return a.Path == b.Path }), nil
}

// matchSegments appends what segments match below base.
func matchSegments(ctx context.Context, fs Lister, found []fsys.Entry, base string, segments []string) ([]fsys.Entry, error) {
	// Directories need not be listed for the segments before the first pattern.
	for len(segments) > 0 && !HasGlob(segments[0]) {
		base = fsys.Join(base, segments[0])
		segments = segments[1:]
	}
	if len(segments) == 0 {
		e, err := fs.Stat(ctx, base)
		if errors.Is(err, fsys.ErrNotFound) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		return append(found, e), nil
	}
	if segments[0] == anyDepth {
		var err error
		if found, err = matchSegments(ctx, fs, found, base, segments[1:]); err != nil {
			return nil, err
		}
	}

	dir := base
	if dir == "" {
		dir = "."
	}
	children, err := fs.List(ctx, dir)
	if errors.Is(err, fsys.ErrNotFound) {
		return found, nil
	} else if err != nil {
		return nil, err
	}
	for _, c := range children {
		name := path.Base(c.Path)
		if isHidden(name) && !isHidden(segments[0]) {
			continue
		}
		if ok, _ := path.Match(segments[0], name); !ok {
			continue
		}
		if c.Fault != nil {
			return nil, c.Fault
		}
		c.Path = fsys.Join(base, name)
		if segments[0] == anyDepth {
			if c.Dir {
				if found, err = matchSegments(ctx, fs, found, c.Path, segments); err != nil {
					return nil, err
				}
			}
		} else if len(segments) == 1 {
			found = append(found, c)
		} else if c.Dir {
			if found, err = matchSegments(ctx, fs, found, c.Path, segments[1:]); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}
