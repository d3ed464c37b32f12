/* daemon.c - writes its configuration, starts it, reads its log, stops it. */
#include "demo/daemon.h"

#include "demo/catalogue.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONFIG_FILE "demo.conf"
#define START_US 20000000
#define STOP_MS 5000

/* ---- its configuration ---------------------------------------------------------------------------------------- */

/* One event loop: all questions are then answered in the order in which they came, so that the herd is a herd also on
 * a machine that is busy with other things, and the first fill does not overtake a question. */
static enum hg_err write_config(const struct folder *folder, const struct arguments *arguments,
				struct hg_fault *out_fault)
{
	char path[256], timeout[32];
	FILE *file;
	bool good;

	folder_file(folder, CONFIG_FILE, &path);
	file = fopen(path, "we");
	if (file == NULL)
		return stage_fault(out_fault, HG_ERR_IO, "cannot write %.150s: %s", path, strerror(errno));
	(void)snprintf(timeout, sizeof(timeout), arguments->acquire_timeout_ms > 0 ? "%ums" : "forever",
		       arguments->acquire_timeout_ms);
	(void)fprintf(file,
		      "listen = \"127.0.0.1:0\"\n"
		      "threads = 1\n"
		      "drain = 0\n"
		      "limits { clients = %u }\n"
		      "origin \"catalogue\" {\n"
		      "	type = sqlite\n"
		      "	path = \"" CATALOGUE_FILE "\"\n"
		      "	pool_max = %u\n"
		      "	acquire_timeout = %s\n"
		      "	queue_max = %u\n"
		      "}\n"
		      "gate \"" DAEMON_KEY_PLAIN "*\" { mode = off }\n"
		      "gate \"" DAEMON_KEY_CLIENT "*\" { grace = 0 }\n"
		      "gate \"" DAEMON_KEY_ORIGIN "{id}\" {\n"
		      "	grace = 0\n"
		      "	origin = catalogue\n"
		      "	query = \"" CATALOGUE_QUERY "\"\n"
		      "}\n",
		      arguments->requests + 100, arguments->pool_max, timeout, arguments->requests);
	good = ferror(file) == 0;
	good = fclose(file) == 0 && good;
	return good ? HG_OK : stage_fault(out_fault, HG_ERR_IO, "cannot write %.150s: %s", path, strerror(errno));
}

/* ---- its process ---------------------------------------------------------------------------------------------- */

/* In the child: nothing here may allocate or lock. A group of its own, so that Ctrl-C comes to the demo alone. */
static void become_daemon(const char *folder, int log, pid_t parent)
{
	static char name[] = "herdgate", serve[] = "serve", option[] = "-c", file[] = CONFIG_FILE;
	char *const arguments[] = {name, serve, option, file, NULL};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	(void)signal(SIGPIPE, SIG_DFL);
	if (getppid() == parent && null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(log, STDOUT_FILENO) >= 0 &&
	    dup2(log, STDERR_FILENO) >= 0 && chdir(folder) == 0)
		(void)execv("/proc/self/exe", arguments);
	_exit(127);
}

/* ---- its log -------------------------------------------------------------------------------------------------- */

static void read_line(struct daemon *daemon, const char *line)
{
	const char *port = strstr(line, " port=");

	if (strstr(line, " event=listening ") != NULL && port != NULL)
		daemon->port = (uint16_t)strtoul(port + strlen(" port="), NULL, 10);
	if (strstr(line, " event=ready ") != NULL)
		daemon->ready = daemon->port != 0;
	if (strstr(line, " level=info ") == NULL && strstr(line, " level=warn") == NULL)
		(void)snprintf(daemon->words, sizeof(daemon->words), "%.*s", (int)sizeof(daemon->words) - 1, line);
}

static void on_log(uv_stream_t *stream, ssize_t len, const uv_buf_t *bytes)
{
	struct daemon *daemon = stream->data;

	if (len < 0) {
		daemon->ended = true;
		(void)uv_read_stop(stream);
	}
	for (ssize_t i = 0; i < len; i++) {
		if (bytes->base[i] != '\n' && daemon->line_len < sizeof(daemon->line) - 1) {
			daemon->line[daemon->line_len++] = bytes->base[i];
		} else if (bytes->base[i] == '\n') {
			daemon->line[daemon->line_len] = '\0';
			read_line(daemon, daemon->line);
			daemon->line_len = 0;
		}
	}
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *out_bytes)
{
	struct daemon *daemon = handle->data;

	*out_bytes = uv_buf_init(daemon->read, sizeof(daemon->read));
}

static bool is_up_or_over(void *arg)
{
	struct daemon *daemon = arg;

	return daemon->ready || daemon->ended;
}

/* ---- start and stop ------------------------------------------------------------------------------------------- */

static enum hg_err launch(struct daemon *daemon, struct stage *stage, const struct folder *folder,
			  struct hg_fault *out_fault)
{
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return stage_fault(out_fault, HG_ERR_IO, "no pipe for the daemon: %s", strerror(errno));
	daemon->pid = fork();
	if (daemon->pid == 0)
		become_daemon(folder->path, ends[1], parent);
	(void)close(ends[1]);
	if (daemon->pid < 0) {
		daemon->pid = 0;
		(void)close(ends[0]);
		return stage_fault(out_fault, HG_ERR_IO, "no process for the daemon: %s", strerror(errno));
	}
	(void)uv_pipe_init(&stage->loop, &daemon->log, 0);
	daemon->log.data = daemon;
	if (uv_pipe_open(&daemon->log, ends[0]) == 0) {
		(void)uv_read_start((uv_stream_t *)&daemon->log, on_room, on_log);
		return HG_OK;
	}
	(void)close(ends[0]);
	return stage_fault(out_fault, HG_ERR_IO, "the daemon's log cannot be read");
}

enum hg_err daemon_start(struct daemon *daemon, struct stage *stage, const struct folder *folder,
			 const struct arguments *arguments, struct hg_fault *out_fault)
{
	enum hg_err err;

	*daemon = (struct daemon){.pid = 0};
	err = write_config(folder, arguments, out_fault);
	if (err == HG_OK)
		err = launch(daemon, stage, folder, out_fault);
	if (err == HG_OK)
		err = stage_wait(stage, is_up_or_over, daemon, stage_now_us() + START_US, out_fault);
	if (err == HG_OK && daemon->ended)
		err = stage_fault(out_fault, HG_ERR_IO, "the daemon did not start: %.200s", daemon->words);
	return err;
}

void daemon_stop(struct daemon *daemon)
{
	if (daemon->pid == 0)
		return;
	(void)kill(daemon->pid, SIGTERM);
	for (int waited_ms = 0; waitpid(daemon->pid, NULL, WNOHANG) == 0; waited_ms += 5) {
		if (waited_ms == STOP_MS)
			(void)kill(daemon->pid, SIGKILL);
		(void)usleep(5000);
	}
	daemon->pid = 0;
	uv_close((uv_handle_t *)&daemon->log, NULL);
}
