// Package listing finds the files that a path stands for: the file itself, all files below a
// directory, or the matches of a pattern. It knows of file systems only how to list directories.
package listing
