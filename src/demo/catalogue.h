/* catalogue.h - the slow database: 10,000 products in SQLite, whose queries slow each other down. */
#ifndef DEMO_CATALOGUE_H
#define DEMO_CATALOGUE_H

#include "demo/folder.h"
#include "demo/arguments.h"
#include "origin/origin.h"

#define CATALOGUE_FILE "catalogue.db"
#define CATALOGUE_ID "42"
#define CATALOGUE_NAME "product no. 42" /* of that one */
/* 50 ms, and 10 ms for each query that is running (origin/cost.h). */
#define CATALOGUE_BASE_MS 50
#define CATALOGUE_EACH_MS 10
#define CATALOGUE_QUERY "SELECT name FROM products WHERE id = :id AND herd_cost(50, 10) = 0"

/* Writes the file. HG_ERR_IO. */
enum hg_err catalogue_create(const struct folder *folder, struct hg_fault *out_fault) HG_MUST_USE;

/* A pool of connections to it, and the query. */
struct catalogue_pool {
	struct origin origin;
	struct origin_query *query;
};

enum hg_err catalogue_open(struct catalogue_pool *pool, const struct folder *folder, const struct arguments *arguments,
			   struct hg_fault *out_fault) HG_MUST_USE;
/* Ends all its loads: their done() has been called when this returns. */
void catalogue_close(struct catalogue_pool *pool);

#endif
