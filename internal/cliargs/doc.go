// Package cliargs reads command lines as people write them. The flag parser of
// urfave/cli wants flags before arguments, reports the first mistake in the words
// of package flag, and completes neither values nor descriptions; this package
// stands before and beside it:
//
//   - Permute puts flags before arguments and reports what no command knows,
//     with the nearest name;
//   - OneArgument, NoArguments, NeedFlags and OneOf check what a command was
//     given, and OnUsageError words what the parser complains about;
//   - Complete answers the completion scripts of Scripts.
//
// Every mistake is an Error, which begins with the command as it was typed.
package cliargs
