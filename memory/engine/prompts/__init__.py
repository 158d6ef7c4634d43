"""Write the requests that are sent to the Observer and the Reflector."""
