package jobdate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	_ "time/tzdata" // a container image may have no time zones of its own

	"aibox/internal/nearest"
)

// localZone is what the system's time zone is called if its name is not known:
// /etc/localtime may be a file without a name that says which zone it is.
const localZone = "Local"

// SystemZone returns the name of the system's time zone. If the environment names an unknown one,
// such as the rule CST-8, which libc understands, warning says so.
func SystemZone(env Environment) (name, warning string) {
	const localtime = "/etc/localtime"
	if given, set := env("TZ"); set && strings.TrimPrefix(given, ":") != localtime {
		name = strings.TrimPrefix(given, ":")
		if i := strings.LastIndex(name, "/zoneinfo/"); i >= 0 {
			name = name[i+len("/zoneinfo/"):]
		}
		switch {
		case name == "": // as the Go runtime and libc take it
			return "UTC", ""
		case !Known(name): // as the Go runtime takes it
			return "UTC", fmt.Sprintf("the environment variable TZ is %s, which is not the name of a time zone, so the job's date is that of UTC: "+
				"set timezone in the job file, or TZ, to a name such as Asia/Shanghai", nearest.Quote(given))
		}
		return name, ""
	}
	file, err := filepath.EvalSymlinks(localtime)
	if err != nil {
		return "UTC", ""
	}
	if _, name, found := strings.Cut(file, "/zoneinfo/"); found && Known(name) {
		return name, ""
	}
	if name, err := os.ReadFile("/etc/timezone"); err == nil && Known(strings.TrimSpace(string(name))) {
		return strings.TrimSpace(string(name)), ""
	}
	return localZone, ""
}

// Known reports whether a time zone has this name.
func Known(name string) bool {
	_, err := time.LoadLocation(name)
	return err == nil && name != ""
}
