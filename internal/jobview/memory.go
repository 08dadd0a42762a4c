package jobview

import (
	"fmt"
	"io"

	"aibox/configs"
	"aibox/internal/humanize"
	"aibox/trainer"
)

// memoryText is what a process takes by purpose.
func memoryText(m *trainer.Memory) string {
	return fmt.Sprintf("table %s, reading %s, passes %s, engine %s, dense part %s, runtime %s",
		humanize.Bytes(m.Table), humanize.Bytes(m.Reading), humanize.Bytes(m.Passes), humanize.Bytes(m.Engine), humanize.Bytes(m.Dense), humanize.Bytes(m.Runtime))
}

// PrintForecast writes, as comments of a job file, how much memory the job will take.
func PrintForecast(w io.Writer, job *configs.Job) error {
	m, err := trainer.Forecast(job)
	if err != nil {
		_, err = fmt.Fprintf(w, "\n# There is no forecast of its memory, as the job cannot be trained: `aibox config check` says why.\n")
		return err
	}
	beside := ""
	if m.Table == 0 {
		beside = " and the table, which grows with the rows"
	}
	_, err = fmt.Fprintf(w, "\n# Memory of the process, at most, once its data fills the queues (a forecast): %s%s\n#   %s\n", humanize.Bytes(m.Process), beside, memoryText(&m))
	return err
}
