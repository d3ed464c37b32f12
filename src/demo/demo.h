/* demo.h - `herdgate demo`: the main job shown over real sockets, in three rounds and a table. */
#ifndef DEMO_DEMO_H
#define DEMO_DEMO_H

/* Reads the arguments (argv[0] is "demo"), plays, prints. Returns the exit code: 0 where the gates held, 1 where they
 * did not or something could not be done (said on standard error), 2 for wrong arguments, 128 and the signal's number
 * after SIGINT or SIGTERM. Leaves no process, folder or descriptor behind, whichever it is. */
int demo_main(int argc, char **argv);

#endif
