// Package cliargs adds to the command-line parser of urfave/cli what users expect. That
// parser wants flags before arguments, reports mistakes in the words of package flag,
// and completes neither values nor descriptions. Here:
//
//   - Permute puts flags before arguments, and reports unknown flags and commands
//     with the nearest name;
//   - OneArgument, NoArguments, NeedFlags and OneOf check what a command was
//     given, and OnUsageError rewords the errors of the parser;
//   - Complete prints the candidates for the completion scripts in Scripts.
//
// Every mistake is an Error, which begins with the command as it was typed.
package cliargs
