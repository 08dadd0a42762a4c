// Package joblock lets one process at a time work on a job.
//
// A job is known by its file, that is by the directory that the file lies in and the name
// that it has there, whatever path leads to it, and by the name of the job as it is
// written, so at any date. Its model directory, its data and other settings do not matter:
// a job that is started twice is one job wherever its paths point, and two jobs that share
// a model directory are two.
//
// The lock is a socket with an abstract name, which is a hash of these. The kernel gives
// the name to one process of the machine (strictly, of its network namespace) and takes it
// back when that process ends, however it ends: there is no file that could be left over,
// be deleted, or belong to another user, and a job file may be replaced while it is
// trained.
package joblock
