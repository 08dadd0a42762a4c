// Package fsys is what local files and HDFS have in common: what a file system can do, how files are
// listed, which errors there are, and how temporary files are called.
package fsys
