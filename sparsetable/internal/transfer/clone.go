package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/catalogcopy"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/memory"
	"aibox/sparsetable/internal/slots"
	"aibox/sparsetable/internal/tabledirs"
)

// CloneInfo says what Clone did.
type CloneInfo struct {
	Snapshot    contract.SnapshotInfo // the snapshot in the new table, with the record of the cloned one
	LinkedBytes int64                 // of files shared by both tables; they take no more space
	CopiedBytes int64                 // of files that could not be linked
}

// ErrNotCloneable: the table cannot be cloned. Its rows can be imported into a new one.
var ErrNotCloneable = errors.New("sparsetable: the table cannot be cloned")

// linkFile makes a hard link. Tests replace it.
var linkFile = os.Link

// LinkWith makes Clone and CanLink call link, in tests, until the returned function is called.
func LinkWith(link func(from, to string) error) (restore func()) {
	old := linkFile
	linkFile = link
	return func() { linkFile = old }
}

// Clone is sparsetable.Clone for tables on SSD in the directories of from and to.
func Clone(ctx context.Context, from, to *tabledirs.Set) (CloneInfo, error) {
	c := cloning{from: from, to: to}
	err := c.run(ctx)
	return c.info, apierr.Of(err)
}

// cloning is the state of one call of Clone.
type cloning struct {
	from, to *tabledirs.Set
	info     CloneInfo
}

func (c *cloning) run(ctx context.Context) (err error) {
	old, err := openCatalog(c.from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	if old.Format().Hash != slots.SeededHashName {
		return fmt.Errorf("%w: the one in %s was made by an older version", ErrNotCloneable, c.from.Names[0])
	}
	snapshot, err := old.Snapshot(c.from.SnapshotID)
	if err != nil {
		return err
	}
	snapshot = checkpoint.Upgraded(snapshot)
	snapshot.Deltas = slices.Clone(snapshot.Deltas)
	if err := c.prepare(); err != nil {
		return err
	}
	if err := c.files(ctx, old.Format(), snapshot); err != nil {
		return err
	}
	return c.catalog(ctx, old, snapshot)
}

// prepare makes the new table's directories, which must not have a table yet.
func (c *cloning) prepare() error {
	for _, dir := range c.to.Names {
		if err := (memory.OSFS{}).MkdirAll(dir); err != nil {
			return err
		}
		files, err := tabledirs.FilesIn(dir)
		if err != nil {
			return err
		}
		if files.HasTable() || len(files.Rows) > 0 {
			return fmt.Errorf("%w: there is already a table in %s", contract.ErrFiles, dir)
		}
	}
	return nil
}

// files gives the new table the snapshot's files.
func (c *cloning) files(ctx context.Context, f catalog.Format, s catalog.Snapshot) error {
	table, err := tabledirs.TableNumber(f)
	if err != nil {
		return err
	}
	from, to := c.from.Names, c.to.Names
	for _, b := range s.Files {
		if err := c.file(ctx, bucketfile.FileName(table, b.ID, b.Incarnation), from, to); err != nil {
			return err
		}
	}
	for _, d := range s.Deltas {
		if err := c.file(ctx, d.Name, from, to); err != nil {
			return err
		}
	}
	for _, dir := range c.to.Names {
		if err := (memory.OSFS{}).SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// file gives the new table, in one of the directories to, a file from one of the directories from.
func (c *cloning) file(ctx context.Context, name string, from, to []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for at, dir := range from {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		return c.linkOrCopy(ctx, path, info.Size(), to, at)
	}
	return fmt.Errorf("%w: %s cannot be found in %s", contract.ErrFiles, name, strings.Join(from, ", "))
}

// linkOrCopy links a file into the first of dirs, beginning with dirs[at], whose file system allows
// it. If none does, it copies the file to dirs[at].
func (c *cloning) linkOrCopy(ctx context.Context, path string, size int64, dirs []string, at int) error {
	for i := range dirs {
		to := filepath.Join(dirs[(at+i)%len(dirs)], filepath.Base(path))
		err := linkFile(path, to)
		if err == nil {
			c.info.LinkedBytes += size
			return nil
		}
		if !cannotLink(err) {
			return err
		}
	}
	if s := c.from.Source; s != nil && s.Lacks(filepath.Base(path)) {
		return fmt.Errorf("%w: %s cannot be linked", tabledirs.ErrArriving, path)
	}
	c.info.CopiedBytes += size
	return copyDurably(ctx, path, filepath.Join(dirs[at%len(dirs)], filepath.Base(path)))
}

// linkErrors are returned when a file is on another file system, somebody else owns it or the file system has no links
// (EPERM, EOPNOTSUPP, or ENOSYS with FUSE), or it has the maximum number of links.
var linkErrors = []error{unix.EXDEV, unix.EPERM, unix.EOPNOTSUPP, unix.ENOSYS, unix.EMLINK}

// cannotLink reports whether a file system refuses to link a file that can be copied.
func cannotLink(err error) bool {
	return slices.ContainsFunc(linkErrors, func(target error) bool { return errors.Is(err, target) })
}

// CanLink reports whether a file in the directory from can be linked into the directory to. It
// tries it with a file that it makes.
func CanLink(from, to string) bool {
	f, err := os.CreateTemp(from, ".probe-")
	if err != nil {
		return false
	}
	name := filepath.Join(to, filepath.Base(f.Name()))
	err = linkFile(f.Name(), name)
	_ = os.Remove(name) // does not exist if it could not be linked
	return errors.Join(f.Close(), os.Remove(f.Name())) == nil && err == nil
}

// copyDurably copies a file to a new one and syncs it.
func copyDurably(ctx context.Context, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	const step = 64 << 20 // bytes between checks of ctx
	n := int64(step)
	for err == nil && n == step {
		if err = ctx.Err(); err == nil {
			n, err = io.CopyN(out, in, step)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// catalog writes the new table's catalog, with only this snapshot.
func (c *cloning) catalog(ctx context.Context, old *catalog.Catalog, s catalog.Snapshot) (err error) {
	id := s.ID
	s.ID = 0 // it gets a new ID
	infos, err := newCatalog(ctx, c.to, old.Format(), []loadedSnapshot{{Snapshot: s, load: func(page func(uint32, []byte) error) error {
		_, err := old.Load(id, page)
		return err
	}}})
	if err == nil {
		c.info.Snapshot = infos[0]
	}
	return err
}

// loadedSnapshot is a snapshot whose pages load passes to a function.
type loadedSnapshot struct {
	catalog.Snapshot
	load   func(page func(uint32, []byte) error) error
	format catalog.Format
}

// newCatalog makes the catalog of a table whose files are in the directories of o, with these
// snapshots, in ascending order of IDs; 0 stands for a new ID.
func newCatalog(ctx context.Context, o *tabledirs.Set, f catalog.Format, snapshots []loadedSnapshot) (infos []contract.SnapshotInfo, err error) {
	layout, err := tabledirs.LayoutOf(f)
	if err != nil {
		return nil, err
	}
	made, err := catalog.Open(catalog.Options{Dir: filepath.Join(o.Names[0], tabledirs.CatalogName), Format: f, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	for _, s := range snapshots {
		info, err := addSnapshot(ctx, made, s)
		if err != nil {
			return nil, err
		}
		info.Layout = layout
		infos = append(infos, info)
	}
	catalogcopy.Open(made, nil, o.Names[1:], o.Logger)
	return infos, nil
}

func addSnapshot(ctx context.Context, made *catalog.Catalog, s loadedSnapshot) (info contract.SnapshotInfo, err error) {
	commit, err := made.BeginAs(s.ID)
	if err != nil {
		return info, err
	}
	if err := s.load(func(page uint32, data []byte) error {
		return cmp.Or(ctx.Err(), commit.PutPage(page, data))
	}); err != nil {
		return info, errors.Join(err, commit.Abort())
	}
	for i := range s.Deltas {
		s.Deltas[i].Snapshot = commit.ID()
	}
	if err := commit.Commit(s.Snapshot); err != nil {
		return info, err
	}
	kept, err := made.Snapshot(commit.ID())
	return contract.SnapshotInfo{ID: kept.ID, Rows: kept.Rows, Bytes: kept.PageBytes, Record: kept.Record}, err
}
