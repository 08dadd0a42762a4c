package configs

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"aibox/configs/internal/schema"
	"aibox/configs/internal/yamltree"
	"aibox/internal/nearest"
)

// check looks for combinations of values that cannot work. A check is skipped if a fault of one of
// its inputs was already reported.
func (l *loader) check() {
	l.checkTimezone()
	l.checkColumns()
	l.checkLabel()
	l.checkModel()
	l.checkOptimizers()
	l.checkTraining()
	l.checkEngine()
	l.checkData()
	l.checkHDFS()
	l.checkSnapshots()
	l.checkOutput()
	l.checkGenerate()
}

func (l *loader) checkTraining() {
	j := l.job
	l.dropEarlyStopping()
	if j.Training.EarlyStopping != nil && l.Sound("data.eval") {
		if len(j.Data.Eval) == 0 && j.Data.ValidationFraction == 0 && l.Sound("data.validation_fraction") {
			l.FaultKey("training.early_stopping", "needs data that are not trained on: give data.validation_fraction, such as 0.1, or data.eval")
		}
		if j.Training.Epochs == 1 && l.Sound("training.epochs") {
			l.FaultKey("training.early_stopping", "has no effect with epochs: 1; raise training.epochs or remove it")
		}
	}
	if g := j.Data.GroupBy; g != "" && l.columnsKnown() {
		if names := l.columnNames(nil); !slices.Contains(names, g) {
			l.FaultAt("data.group_by", "%s is not in data.columns%s; a column of the files that is not a feature can be listed with role: ignore", nearest.Quote(g), nearest.Suggest(g, names))
		}
	}
	l.checkDelimiters()
}

// dropEarlyStopping drops the job file's early stopping if an override asks for a single epoch.
func (l *loader) dropEarlyStopping() {
	const key = "training.early_stopping"
	t := &l.job.Training
	set := l.Given["training.epochs"].Set
	if t.EarlyStopping == nil || t.Epochs != 1 || set == "" || !l.Sound("training.epochs", key) {
		return
	}
	for path := range l.Given {
		if strings.HasPrefix(path, key) && l.Keys[path].Set != "" {
			return
		}
	}
	if !l.Saved {
		l.Notes = append(l.Notes, fmt.Sprintf("%s of the job file is ignored: it has no effect with epochs: 1 (%s)", key, set))
	}
	t.EarlyStopping = nil
	maps.DeleteFunc(l.Given, func(path string, _ yamltree.Place) bool { return strings.HasPrefix(path, key) })
}

func (l *loader) checkEngine() {
	if e := l.job.Engine; e.Kind == "cpu" && e.Precision == "tf32" && l.Sound("engine.kind", "engine.precision") {
		l.FaultKey("engine.precision", "tf32 is a number format of GPUs; with engine.kind: cpu, use float32 or bf16")
	}
}

func (l *loader) checkDelimiters() {
	d := l.job.Data.Delimiter
	if d == "" && !l.Sound("data.format") {
		return // the default depends on the format, which is faulty
	}
	if l.Sound("data.format") && !slices.Contains(textFormats, l.job.Data.Format) {
		return
	}
	if l.Sound("data.delimiter") && (len(d) != 1 || strings.ContainsAny(d, "\"\r\n\x00") || d[0] >= 0x80) {
		hint := ""
		if d == `\t` || d == "tab" || d == "TAB" {
			hint = fmt.Sprintf("; a tab is written %s", schema.Instead("data.delimiter", l.Given["data.delimiter"], `"\t"`))
		}
		l.FaultAt("data.delimiter", "%s is not a delimiter: a delimiter is one ASCII character other than a quotation mark, a line end or a null character%s", nearest.Quote(d), hint)
		return
	}
	for i, null := range l.job.Data.NullValues {
		if p := fmt.Sprintf("data.null_values[%d]", i); strings.ContainsAny(null, d+"\r\n") && l.Sound("data.delimiter", p) {
			l.FaultAt(p, "no cell can be %s, because it contains a delimiter or a line end", nearest.Quote(null))
		}
	}
	for i, c := range l.job.Data.Columns {
		for key, sep := range map[string]string{"separator": c.Separator, "weight_separator": c.WeightSeparator} {
			p := columnPath(i, key)
			if sep != "" && sep == d && l.Sound("data.delimiter", p) {
				l.FaultAt(p, "%s already separates the columns of the file", nearest.Quote(sep))
			}
		}
	}
}

// checkData checks the schemes of the files.
func (l *loader) checkData() {
	for key, uris := range map[string][]string{"data.train": l.job.Data.Train, "data.eval": l.job.Data.Eval} {
		for i, uri := range uris {
			if at := fmt.Sprintf("%s[%d]", key, i); !knownScheme(uri) && l.Sound(at) {
				l.FaultAt(at, "%s: data is read from hdfs:// and from local paths", nearest.Quote(uri))
			}
		}
	}
}

// knownScheme reports whether a URI is one of HDFS or a path.
func knownScheme(uri string) bool {
	scheme, _, ok := strings.Cut(uri, "://")
	return !ok || strings.EqualFold(scheme, "file") || strings.EqualFold(scheme, "hdfs")
}

func (l *loader) checkHDFS() {
	h := l.job.Data.HDFS
	if !l.Sound("data.hdfs") {
		return
	}
	if h.KerberosKeytab != "" && h.KerberosPrincipal == "" {
		l.FaultAt("data.hdfs.kerberos_keytab", "needs kerberos_principal, because a keytab may hold several principals")
	}
	if h.KerberosPrincipal != "" && h.KerberosKeytab == "" {
		l.FaultAt("data.hdfs.kerberos_principal", "has no effect without kerberos_keytab; a ticket cache holds its own principal")
	}
	if h.KerberosKeytab != "" && h.KerberosCCache != "" {
		l.FaultAt("data.hdfs.kerberos_ccache", "log in with the keytab or with the ticket cache: remove one of the two")
	}
}

// checkRemote checks the URI of a remote directory.
func (l *loader) checkRemote(key, uri, what string) {
	if !knownScheme(uri) && l.Sound(key) {
		l.FaultAt(key, "%s: %s to hdfs:// or to a path", nearest.Quote(uri), what)
	}
	local := strings.TrimPrefix(strings.Replace(uri, "file://localhost/", "file:///", 1), "file://")
	if uri != "" && path.Clean(local) == path.Clean(l.job.Output.ModelDir) && l.Sound(key, "output.model_dir") {
		l.FaultAt(key, "is the same directory as output.model_dir; name one on HDFS or on another machine")
	}
}

func (l *loader) checkOutput() {
	j := l.job
	local := func(p, uri string) {
		if strings.Contains(uri, "://") && l.Sound(p) {
			l.FaultAt(p, "%s is not a local path; models are written to and read from local directories", nearest.Quote(uri))
		}
	}
	local("output.model_dir", j.Output.ModelDir)
	local("training.warm_start", j.Training.WarmStart)
	if _, given := l.Given["output.metrics"]; given {
		local("output.metrics", j.Output.Metrics)
	}
	if _, given := l.Given["output.tensorboard"]; given {
		local("output.tensorboard", j.Output.TensorBoard)
	}
	l.checkRemote("output.remote", j.Output.Remote, "models are published")
	l.checkRemote("snapshots.remote", j.Snapshots.Remote, "snapshots are uploaded")
	for i, dir := range j.SparseTable.Dirs {
		p := fmt.Sprintf("sparse_table.dirs[%d]", i)
		switch {
		case !l.Sound(p):
		case dir == "":
			l.FaultAt(p, "is empty; name a directory")
		case slices.ContainsFunc(j.SparseTable.Dirs[:i], func(d string) bool { return d != "" && path.Clean(d) == path.Clean(dir) }):
			l.FaultAt(p, "%s is given twice; each directory should be on an SSD of its own", nearest.Quote(dir))
		default:
			local(p, dir)
		}
	}
	if w := j.Training.WarmStart; w != "" && w != WarmStartLatest && l.Sound("output.model_dir", "training.warm_start") && path.Clean(w) == path.Clean(j.Output.ModelDir) {
		l.FaultAt("training.warm_start", "is the same directory as output.model_dir: training would replace the model that it starts from; write latest, to go on from the newest model of that directory every time, or name one of its generations, as in %s", nearest.Quote(path.Clean(w)+"@3"))
	}
	if t, m := j.Output.TensorBoard, j.Output.Metrics; t != "" && l.Sound("output") && path.Clean(t) == path.Clean(m) {
		l.FaultAt("output.tensorboard", "is the same path as output.metrics")
	}
}

func (l *loader) checkGenerate() {
	g := l.job.Generate
	if g == nil || !l.Sound("generate") {
		return
	}
	names, fields := map[string]bool{}, 0
	for i, f := range g.Fields {
		fields += f.Repeat
		for n := range f.Repeat {
			name := f.Name
			if f.Repeat > 1 {
				name = fmt.Sprintf("%s%d", f.Name, n+1)
			}
			if names[name] {
				l.FaultAt(fmt.Sprintf("generate.fields[%d].name", i), "field %s exists twice", nearest.Quote(name))
				break
			}
			names[name] = true
		}
	}
	if l.job.Data.Format == "criteo" && l.Sound("data.format") {
		if fields != criteoSparse {
			l.FaultKey("generate.fields", "%d fields, but the Criteo format has %d", fields, criteoSparse)
		}
		if g.DenseColumns != criteoDense {
			l.FaultAt("generate.dense_columns", "%d dense columns, but the Criteo format has %d", g.DenseColumns, criteoDense)
		}
	}
	if g.InteractionStrength > 0 && variedFields(g) < 2 {
		l.FaultAt("generate.interaction_strength", "%s needs two fields of more than one value", yamltree.FormatFloat(g.InteractionStrength))
	}
	if g.LinearStrength > 0 && variedFields(g) == 0 && g.DenseColumns == 0 {
		l.FaultAt("generate.linear_strength", "%s needs a dense column or a field of more than one value", yamltree.FormatFloat(g.LinearStrength))
	}
}
