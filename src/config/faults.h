/* faults.h - collecting what is wrong, sorted by line, with the place before each sentence. */
#ifndef CONFIG_FAULTS_H
#define CONFIG_FAULTS_H

#include "config/config.h"

void faults_init(struct config_faults *faults);

/* Adds a sentence. `place` is a file name, or "command line"; `line` 0 is left out. Control bytes become '?'. */
void faults_add(struct config_faults *faults, bool advice, const char *place, uint32_t line, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Of `len` words the one that a typist may have meant by `word`; NULL where none is near. */
const char *faults_meant(const char *word, const char *const *words, size_t len);

#endif
