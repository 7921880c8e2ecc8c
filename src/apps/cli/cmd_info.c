/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer info`: the NIC, its limits and the settings in effect. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "cli.h"
#include "cli_nic.h"
#include "cli_place.h"
#include "cli_report.h"
#include "cli_settings.h"
#include "cli_verbs.h"

/* JSON's integers end at 2^63 - 1 here; a larger limit is no limit. */
static void set_u64(json_t *obj, const char *key, uint64_t value)
{
	json_int_t shown = (json_int_t)u64_min(value, INT64_MAX);

	(void)json_object_set_new(obj, key, json_integer(shown));
}

static json_t *gids_json(const struct cli_verbs_device *dev)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < dev->gid_count; i++) {
		const uint8_t *raw = dev->gids[i].raw;
		char text[INET6_ADDRSTRLEN];

		/* An IPv4-mapped GID reads best as what it is. */
		if (inet_ntop(AF_INET6, raw, text, sizeof(text)))
			(void)json_array_append_new(array, json_string(text));
	}
	return array;
}

static json_t *limits_json(const struct cli_verbs_device *dev)
{
	const struct ibv_device_attr *a = &dev->attr;
	json_t *obj = json_object();

	set_u64(obj, "queue_pairs", (uint64_t)a->max_qp);
	set_u64(obj, "requests_per_queue", (uint64_t)a->max_qp_wr);
	set_u64(obj, "sge", (uint64_t)a->max_sge);
	set_u64(obj, "completion_queues", (uint64_t)a->max_cq);
	set_u64(obj, "completions_per_queue", (uint64_t)a->max_cqe);
	set_u64(obj, "shared_receive_queues", (uint64_t)a->max_srq);
	set_u64(obj, "protection_domains", (uint64_t)a->max_pd);
	set_u64(obj, "regions", (uint64_t)a->max_mr);
	set_u64(obj, "region_bytes", a->max_mr_size);
	set_u64(obj, "windows", (uint64_t)a->max_mw);
	set_u64(obj, "reads_and_atomics_in_flight",
		(uint64_t)a->max_qp_rd_atom);
	set_u64(obj, "message_bytes", dev->port.max_msg_sz);
	set_u64(obj, "mtu_bytes", 128ull << dev->port.active_mtu);
	set_u64(obj, "device_memory_bytes", dev->dm_bytes);
	return obj;
}

static void add_device(json_t *tree, const struct cli_verbs_device *dev)
{
	json_t *obj = json_object();

	cli_report_set(obj, "name", "%s", dev->name);
	cli_report_set(obj, "guid", "%016llx", (unsigned long long)dev->guid);
	cli_report_set(obj, "firmware", "%.64s", dev->attr.fw_ver);
	cli_report_set(obj, "port_state", "%s",
		       dev->port.state == IBV_PORT_ACTIVE ? "active" : "down");
	(void)json_object_set_new(obj, "gids", gids_json(dev));
	(void)json_object_set_new(tree, "device", obj);
	(void)json_object_set_new(tree, "limits", limits_json(dev));
}

/* What is only true of the soft NIC. */
static void add_soft(json_t *tree)
{
	json_t *ports = json_object();
	json_t *keys = json_object();

	cli_report_set(ports, "shm_cable",
		       "between processes of this machine, for every region");
	cli_report_set(ports, "direct",
		       "between processes of this machine, for memory from "
		       "aqdv_alloc");
	(void)json_object_set_new(tree, "ports", ports);
	set_u64(keys, "random_bits", 24);
	set_u64(keys, "tag_bits", 8);
	cli_report_set(keys, "random_source", "the kernel's CSPRNG");
	cli_report_set(keys, "bound_to", "protection domain");
	(void)json_object_set_new(tree, "keys", keys);
}

static void add_nic(json_t *tree, const struct config *config)
{
	char libdir[PATH_MAX], path[PATH_MAX + 32], why[256];
	bool have_private = cli_place_verbs_libdir(libdir) == 0;
	struct cli_verbs_device dev;
	struct cli_nic nic;

	cli_nic_make(cli_settings_nic(config), CLI_NIC_SYSFS, &nic);
	cli_report_set(tree, "nic", "%s", nic.soft ? "soft" : "hw");
	cli_report_set(tree, "nic_asked", "%s", nic.asked);
	cli_report_set(tree, "nic_why", "%s", nic.why);
	if (have_private)
		cli_report_set(tree, "verbs_libdir", "%s", libdir);
	else
		(void)json_object_set_new(tree, "verbs_libdir", json_null());
	if (nic.soft)
		(void)snprintf(path, sizeof(path), "%s/%s", libdir,
			       CLI_PLACE_VERBS_SONAME);
	else
		(void)snprintf(path, sizeof(path), CLI_PLACE_VERBS_SONAME);
	if (cli_verbs_query(path, 0, &dev, why) == 0)
		add_device(tree, &dev);
	else
		cli_report_set(tree, "device_error", "%s", why);
	if (nic.soft)
		add_soft(tree);
}

/* nbdkit finds it by itself only where its own plugins are. */
static void add_plugin(json_t *tree)
{
	char path[PATH_MAX];

	if (cli_place_nbd_plugin(path) == 0)
		cli_report_set(tree, "nbd_plugin", "%s", path);
	else
		(void)json_object_set_new(tree, "nbd_plugin", json_null());
}

int cmd_info(const struct cli_command *self, int argc, char **argv)
{
	struct config *config;
	struct cli_args args = {0};
	json_t *tree;
	int code = cli_parse(self, argc, argv, OPT_WORDS_NONE, &args, NULL);
	bool opened;

	if (code != CLI_GO)
		return code;
	if (cli_settings_load(&args, &config) != 0)
		return CLI_FAILED;
	tree = json_object();
	cli_report_set(tree, "version", "%s", cli_version());
	cli_report_set(tree, "commit", "%s", cli_commit());
	add_nic(tree, config);
	add_plugin(tree);
	cli_settings_report(config, tree);
	config_destroy(config);
	opened = json_object_get(tree, "device") != NULL;
	if (!opened)
		cli_error("no NIC: %s; 'aquifer doctor' says more",
			  json_string_value(
				  json_object_get(tree, "device_error")));
	if (cli_report_print(tree, args.json) != 0)
		return CLI_FAILED;
	return opened ? CLI_OK : CLI_FAILED;
}
