// Package rowwriter writes files of rows whose cells are text, as lines with delimiters, as lines of tokens
// or by any other Encoder. It knows nothing of schemas.
//
//	Create --File--> Write, Write, … --Encoder--> compressed --source.Writer--> Close
//
// Nothing is visible under the file's name before Close, or CloseAll of several files, has returned nil.
package rowwriter
