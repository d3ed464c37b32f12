/* picture.c - a bar for each round, split into requests that were answered and requests that failed; beside it how
 * often the query ran and when the last request was over. */
#include "demo/picture.h"

#include "demo/catalogue.h"
#include "demo/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BAR_X 190
#define BAR_WIDTH 400
#define BAR_HEIGHT 34
#define ROW_Y 118
#define ROW_HEIGHT 56
#define QUERIES_X 690
#define TOTAL_X 830

/* Blue and orange stay apart in every kind of colour blindness (Okabe and Ito 2008). */
static const char head[] =
	"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 310\" width=\"860\" height=\"310\" role=\"img\" "
	"aria-labelledby=\"title description\">\n"
	"<style>\n"
	"  .paper { fill: #ffffff } text { fill: #1f2328; font: 15px system-ui, sans-serif }\n"
	"  .title { font-size: 19px; font-weight: 600 } .small { font-size: 13px; fill: #57606a }\n"
	"  .figure { font-size: 19px; font-weight: 600; text-anchor: end } .right { text-anchor: end }\n"
	"  .ok { fill: #0072b2 } .failed { fill: #e69f00 } .on-ok { fill: #ffffff }\n"
	"  .on-failed { fill: #1f2328; paint-order: stroke; stroke: #e69f00; stroke-width: 6px }\n"
	"  .stripe { stroke: #b87a00; stroke-width: 3 } .middle { text-anchor: middle }\n"
	"  @media (prefers-color-scheme: dark) {\n"
	"    .paper { fill: #0d1117 } text { fill: #e6edf3 } .small { fill: #9da7b3 }\n"
	"    .ok { fill: #56b4e9 } .on-ok, .on-failed { fill: #0d1117 }\n"
	"  }\n"
	"</style>\n"
	"<defs><pattern id=\"stripes\" width=\"12\" height=\"12\" patternUnits=\"userSpaceOnUse\" "
	"patternTransform=\"rotate(45)\">\n"
	"  <rect class=\"failed\" width=\"12\" height=\"12\"/><line class=\"stripe\" y2=\"12\"/>\n"
	"</pattern></defs>\n"
	"<rect class=\"paper\" width=\"860\" height=\"310\" rx=\"8\"/>\n";

static void write_title(FILE *file, const struct arguments *arguments, const struct figures *rounds)
{
	char requests[32], timeout[32];

	report_number(&requests, arguments->requests);
	report_number(&timeout, arguments->acquire_timeout_ms);
	(void)fprintf(file, "<title id=\"title\">%s clients ask for one key in the instant after it expired</title>\n",
		      requests);
	(void)fputs("<desc id=\"description\">", file);
	for (size_t i = 0; i < ROUNDS; i++)
		(void)fprintf(file, "%s: %u answered, %u failed, %" PRIu64 " queries, over after %" PRId64 " ms. ",
			      rounds[i].round, rounds[i].ok, rounds[i].failed, rounds[i].queries,
			      (rounds[i].total_us + 500) / 1000);
	(void)fputs("</desc>\n", file);
	(void)fprintf(file,
		      "<text class=\"title\" x=\"24\" y=\"40\">%s clients ask for one key in the instant after it "
		      "expired</text>\n",
		      requests);
	(void)fprintf(file,
		      "<text class=\"small\" x=\"24\" y=\"64\">at most %u queries at a time, each %d ms + %d ms for "
		      "each one running; ",
		      arguments->pool_max, CATALOGUE_BASE_MS, CATALOGUE_EACH_MS);
	if (arguments->acquire_timeout_ms > 0)
		(void)fprintf(file, "a request waits at most %s ms for its turn</text>\n", timeout);
	else
		(void)fputs("a request waits for its turn as long as it takes</text>\n", file);
	(void)fprintf(file,
		      "<text class=\"small\" x=\"%d\" y=\"100\">requests</text>\n"
		      "<text class=\"small right\" x=\"%d\" y=\"100\">queries</text>\n"
		      "<text class=\"small right\" x=\"%d\" y=\"100\">over after</text>\n",
		      BAR_X, QUERIES_X, TOTAL_X);
}

static void write_part(FILE *file, int x, int y, int width, const char *fill)
{
	if (width > 0)
		(void)fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" %s/>\n", x, y, width,
			      BAR_HEIGHT, fill);
}

/* The words stand in the middle of the larger part. */
static void write_words(FILE *file, const struct figures *figures, int y, int ok_width)
{
	bool on_ok = ok_width > BAR_WIDTH / 2;
	int x = on_ok ? BAR_X + ok_width / 2 : BAR_X + ok_width + (BAR_WIDTH - ok_width) / 2;
	char ok[32], failed[32];

	report_number(&ok, figures->ok);
	report_number(&failed, figures->failed);
	(void)fprintf(file, "<text class=\"middle %s\" x=\"%d\" y=\"%d\">%s answered", on_ok ? "on-ok" : "on-failed", x,
		      y + 22, ok);
	if (figures->failed > 0)
		(void)fprintf(file, ", %s failed", failed);
	(void)fputs("</text>\n", file);
}

static void write_round(FILE *file, const struct figures *figures, int y)
{
	int ok_width = (int)((uint64_t)BAR_WIDTH * figures->ok / figures->requests);
	char number[32];

	(void)fprintf(file, "<text x=\"24\" y=\"%d\">%s</text>\n", y + 22, figures->round);
	write_part(file, BAR_X, y, ok_width, "class=\"ok\"");
	write_part(file, BAR_X + ok_width, y, BAR_WIDTH - ok_width, "fill=\"url(#stripes)\"");
	write_words(file, figures, y, ok_width);
	report_number(&number, figures->queries);
	(void)fprintf(file, "<text class=\"figure\" x=\"%d\" y=\"%d\">%s</text>\n", QUERIES_X, y + 24, number);
	report_number(&number, (uint64_t)(figures->total_us + 500) / 1000);
	(void)fprintf(file, "<text class=\"figure\" x=\"%d\" y=\"%d\">%s ms</text>\n", TOTAL_X, y + 24, number);
}

enum hg_err picture_write(const char *path, const struct arguments *arguments, const struct figures *rounds,
			  struct hg_fault *out_fault)
{
	FILE *file = fopen(path, "we");
	bool good;

	if (file == NULL)
		return stage_fault(out_fault, HG_ERR_IO, "cannot write %.150s: %s", path, strerror(errno));
	(void)fputs(head, file);
	write_title(file, arguments, rounds);
	for (int i = 0; i < ROUNDS; i++)
		write_round(file, &rounds[i], ROW_Y + i * ROW_HEIGHT);
	(void)fprintf(file, "<text class=\"small\" x=\"24\" y=\"292\">made by herdgate demo: real connections, a real "
			    "pool, one run on one machine</text>\n</svg>\n");
	good = ferror(file) == 0;
	good = fclose(file) == 0 && good;
	return good ? HG_OK : stage_fault(out_fault, HG_ERR_IO, "cannot write %.150s: %s", path, strerror(errno));
}
