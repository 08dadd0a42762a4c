package layout

import (
	"fmt"

	"aibox/internal/errkind"
)

// Error says that the rows of a table have another layout than requested.
type Error struct {
	Dir        string // of the table
	Have, Want Layout
}

func (e *Error) Error() string {
	return fmt.Sprintf("sparsetable: the table in %s has rows of %v, but rows of %v were asked for: open it with the layout that it has, or make a new table elsewhere", e.Dir, e.Have, e.Want)
}

// ErrorKind classifies the error for exit codes and reports.
func (*Error) ErrorKind() errkind.Kind { return errkind.Usage }
