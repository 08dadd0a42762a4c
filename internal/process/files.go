package process

// RaiseFiles is where a process is allowed more open files.
const RaiseFiles = "ulimit -Hn, LimitNOFILE= in a systemd unit, --ulimit nofile= of a container"
