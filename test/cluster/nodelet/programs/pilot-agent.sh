#!/bin/sh
# The agent under the name by which the hooks of injected pods call it.
exec /usr/local/bin/node /opt/istio/dist/istio-agent.mjs "$@"
