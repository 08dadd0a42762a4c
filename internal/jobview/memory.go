package jobview

import (
	"context"
	"fmt"
	"io"
	"strings"

	"aibox/configs"
	"aibox/internal/humanize"
	"aibox/internal/process"
	"aibox/trainer/forecast"
)

// PrintForecast writes, as comments of a job file, how much memory the job will take, device memory
// included, and from what that was computed.
func PrintForecast(ctx context.Context, w io.Writer, job *configs.Job) error {
	size, unread := forecast.SampleData(ctx, job)
	m, err := forecast.ForHost(job, size)
	if err != nil {
		_, err = fmt.Fprintf(w, "\n# There is no forecast of its memory, because the job cannot be trained: `aibox config check` says why.\n")
		return err
	}
	beside := ""
	if m.Table == 0 {
		beside = " and the table, which grows with the rows"
	}
	basis := "the job file alone, for data that fill all queues, with one value in each field"
	switch {
	case unread != nil:
		basis += "; data.train cannot be read now"
	case size.Sampled == size.Examples && size.Sampled > 0:
		basis = fmt.Sprintf("the job file and all %s of data.train", humanize.Count(size.Examples, "example"))
	case size.Examples > 0:
		basis = fmt.Sprintf("the job file and the first %d of some %d examples of data.train (%s, %s)",
			size.Sampled, size.Examples, humanize.Count(int64(size.Files), "file"), humanize.Bytes(size.Bytes))
	}
	_, err = fmt.Fprintf(w, "\n# Memory of the process, at most (a forecast): %s%s\n#   %s\n# It was computed from %s.\n", humanize.Bytes(m.Process), beside, &m, basis)
	if err != nil {
		return err
	}
	if excess := m.Excess(job, process.MostMemory()); excess != "" {
		if _, err := fmt.Fprintf(w, "# Here %s.\n", excess); err != nil {
			return err
		}
	}
	if short := PrintDevices(w, job, size, "# "); short != nil {
		_, err = fmt.Fprintf(w, "# %s\n", strings.ReplaceAll(short.Error(), "\n", "\n# "))
	}
	return err
}
