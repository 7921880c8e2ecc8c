/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer mount`: names of elastic memory as a file system. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "cli.h"
#include "cli_report.h"
#include "mount/mount.h"

struct mount_args {
	struct mount_options options;
	bool json;
};

const struct opt cmd_mount_options[] = {
	OPT_FLAG(struct mount_args, options.is_foreground, "foreground",
		 "stay here until it is unmounted"),
	OPT_SIZE(struct mount_args, options.block_bytes, "block", "SIZE",
		 64 << 10, 1 << 30,
		 "bytes of a block of files that are made (default 8M)"),
	OPT_FLAG(struct mount_args, json, "json", "print JSON"),
	OPT_END,
};

static int mounted(void *ctx)
{
	const struct mount_args *a = ctx;
	int err = cli_report_print(json_pack("{s:s, s:s}", "path",
					     a->options.path, "folder",
					     a->options.folder),
				   a->json);

	return err ? err : fflush(stdout) ? -EIO : 0;
}

int cmd_mount(const struct cli_command *self, int argc, char **argv)
{
	struct mount_args a = {0};
	struct cli_words words;
	char *folder;
	int err, code = cli_parse(self, argc, argv, OPT_WORDS_ANY, &a, &words);

	if (code != CLI_GO)
		return code;
	if (words.count != 2) {
		cli_error("mount needs a path and a folder: aquifer mount /job "
			  "/mnt");
		return CLI_USAGE;
	}
	a.options.path = words.word[0];
	/* In the background it is somewhere else. */
	folder = realpath(words.word[1], NULL);
	if (!folder) {
		cli_error("there is no folder %s", words.word[1]);
		return CLI_FAILED;
	}
	a.options.folder = folder;
	a.options.mounted = mounted;
	a.options.ctx = &a;
	err = mount_serve(&a.options);
	if (err)
		cli_error("%s", error_last());
	free(folder);
	return err ? cli_error_exit(err) : CLI_OK;
}
