package modeldir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"aibox/internal/disk"
	"aibox/internal/errkind"
	"aibox/trainer/modeldir/internal/faults"
)

// A model directory holds the generation that is its model and, as far as Writer.Keep allows,
// earlier models. MODEL.json at the top is the manifest of the model. Each complete generation has
// a copy of its own manifest. The copy is updated before another generation becomes the model, so
// it is valid as long as MODEL.json at the top is about another generation. A generation that is
// not the model and has no manifest of its own is incomplete: its run is still going, or was
// killed.

// Generation is a complete generation of a model directory.
type Generation struct {
	Number    int
	Name      string // of its directory
	Published bool   // it is the model of the directory
	Manifest  Manifest
	// Fault says why the generation cannot be used; then Manifest is not set.
	Fault error
}

// generationName matches the names of generations.
var generationName = regexp.MustCompile(`^gen-([0-9]{6,})$`)

// numberOf returns the number of a generation by its name, 0 if the name is not one of a
// generation.
func numberOf(gen string) int {
	m := generationName.FindStringSubmatch(gen)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || nameOf(n) != gen {
		return 0
	}
	return n
}

func nameOf(number int) string { return fmt.Sprintf("gen-%06d", number) }

// Number returns the number of the generation.
func (m *Manifest) Number() int { return numberOf(m.Generation) }

// SplitName splits the name of a model: a model directory, or one of its generations, written DIR@N
// or as its subdirectory. The number is 0 for a model directory, whose own name may contain @, too.
func SplitName(name string) (dir string, number int) {
	if base := filepath.Base(name); isGeneration(name, base) {
		return filepath.Dir(filepath.Clean(name)), numberOf(base)
	}
	i := strings.LastIndexByte(name, '@')
	if i <= 0 {
		return name, 0
	}
	n, err := strconv.Atoi(name[i+1:])
	if err != nil || n <= 0 || strings.Trim(name[i+1:], "0123456789") != "" {
		return name, 0
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return name, 0
	}
	return name[:i], n
}

// isGeneration reports whether dir, whose last element is base, is the subdirectory of a generation
// and not a model directory.
func isGeneration(dir, base string) bool {
	if numberOf(base) == 0 {
		return false
	}
	m, err := readManifest(dir)
	return err == nil && m.Generation == base && disk.Gone(filepath.Join(dir, base))
}

// JoinName returns the name of a generation of a model directory.
func JoinName(dir string, number int) string { return fmt.Sprintf("%s@%d", dir, number) }

// Generations returns the complete generations of dir, the newest first. They include generations
// with a damaged manifest, with Fault set. The error is ErrNoModel if there are none.
func Generations(dir string) ([]Generation, error) {
	top, err := readManifest(dir)
	if err != nil {
		top = nil
		if errors.Is(err, errkind.ErrNewer) {
			return nil, err
		}
	}
	names, e := generations(dir)
	if e != nil {
		return nil, e
	}
	var all []Generation
	for _, name := range names {
		g := Generation{Number: numberOf(name), Name: name, Published: top != nil && top.Generation == name}
		switch own, fault := manifestOf(dir, name); {
		case errors.Is(fault, fs.ErrNotExist):
			continue
		case fault != nil:
			g.Fault = fault
		default:
			g.Manifest = *own
		}
		all = append(all, g)
	}
	if len(all) == 0 && err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Generation) int { return b.Number - a.Number })
	return all, nil
}

// manifestOf returns the manifest of a generation, which need not be the model. The error wraps
// fs.ErrNotExist if the generation is incomplete.
func manifestOf(dir, gen string) (*Manifest, error) {
	for {
		top, topErr := readManifest(dir)
		if topErr == nil && top.Generation == gen {
			return top, nil
		}
		own, err := ownManifest(dir, gen)
		now, nowErr := readManifest(dir)
		// Otherwise the generation became the model meanwhile, or ceased to be it.
		if topErr != nil && nowErr != nil || topErr == nil && nowErr == nil && *now == *top {
			return own, err
		}
	}
}

// ownManifest reads the copy of the manifest in the generation itself.
func ownManifest(dir, gen string) (*Manifest, error) {
	path := filepath.Join(dir, gen, ManifestName)
	data, err := disk.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(path, dir, data)
	if err != nil {
		return nil, err
	}
	if m.Generation != gen {
		return nil, faults.Damaged(path, fmt.Sprintf("it is the manifest of %s", m.Generation))
	}
	return m, nil
}

// writeOwn writes the copy of a manifest to its generation, unless it is there already.
func (m *Manifest) writeOwn(dir string) error {
	if own, err := ownManifest(dir, m.Generation); err == nil && *own == *m {
		return nil
	}
	data, err := m.encode()
	if err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(dir, m.Generation, ManifestName), data)
}

func (m *Manifest) encode() ([]byte, error) {
	data, err := json.MarshalIndent(m, "", "  ")
	return append(data, '\n'), err
}

// namedManifest returns the manifest of the generation with the given number. If there is none, the
// error lists the generations.
func namedManifest(dir string, number int) (*Manifest, error) {
	if !disk.Exists(dir) {
		return nil, noDirectory(dir)
	}
	m, err := manifestOf(dir, nameOf(number))
	if !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	all, err := Generations(dir)
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("model directory %s: %w: it has no generation %d; it has %s", dir, ErrNoModel, number, listed(all))
}

// listed lists the numbers of generations: "3 and 4 (published)".
func listed(all []Generation) string {
	var texts []string
	for _, g := range slices.Backward(all) {
		text := strconv.Itoa(g.Number)
		if g.Published {
			text += " (published)"
		}
		texts = append(texts, text)
	}
	if n := len(texts); n > 1 {
		return strings.Join(texts[:n-1], ", ") + " and " + texts[n-1]
	}
	return strings.Join(texts, "")
}
