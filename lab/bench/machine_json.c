/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the machine in JSON. */
#include "machine_json.h"

#include "guard.h"

json_t *machine_json(const struct machine *m)
{
	return json_pack(
		"{s:s, s:s, s:i, s:f, s:f, s:i, s:i, s:i}", "cpu", m->cpu,
		"kernel", m->kernel, "cores", (int)m->cpu_count, "tsc_ghz",
		m->tsc_ghz, "clock_read_ns", m->tick_cost_ns, "rt_runtime_us",
		(int)m->rt_runtime_us, "client_core", (int)GUARD_CPU_CLIENT,
		"server_core", (int)GUARD_CPU_SERVER);
}
