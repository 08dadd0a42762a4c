// Package joblock lets one process at a time work on a job.
//
// A job is identified by its file, that is, by the directory of the file and its name there,
// whatever path leads to it, and by the name of the job as written, before templates are expanded,
// so at any date. Its model directory, its data and other settings do not matter: a job that is
// started twice is one job wherever its paths point, and two jobs that share a model directory are
// two jobs.
//
// The lock is a socket with an abstract name, which is a hash of file and name. The kernel gives
// the name to one process of the machine (strictly, of its network namespace) and takes it back
// when that process ends, for whatever reason. There is no file that could be left over, be
// deleted, or belong to another user, and a job file may be replaced while it is trained.
package joblock
